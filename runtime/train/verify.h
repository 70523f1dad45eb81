// Parity: the planned run against the single-device program, step by step.
#pragma once

#include <functional>

#include "core/base/diagnostic.h"
#include "core/runtime_interface.h"
#include "runtime/exec/engine.h"

namespace piper {

// The global batch of a step (from 1): every input, all rows.
using GlobalBatch = std::function<Batch(std::int64_t step)>;

// `piper verify`: on the job's own rows. Where every row counts the same number of labels, a
// different number is ignored in each, since equal counts would hide a mean of means.
Expected<VerifyReport> verify_parity(const Job& job, const VerifyOptions& options);

// The same on given batches. After each step the single-device program takes over the run's
// weights, so a step's difference is its own. Compared are: initial weights (bitwise), loss of
// training and evaluation, gradients, norm, and updated weights on every home; replicas bitwise
// with each other. Tolerances: see verify.cc.
Expected<VerifyReport> verify_parity(const Job& job, const VerifyOptions& options,
                                     const GlobalBatch& batch);

}  // namespace piper
