// What a job's Hugging Face folders say beside what the job does with them.
#pragma once

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/ir/model_graph.h"
#include "core/runtime_interface.h"

namespace piper {

// Before any thread starts. Refuses weights that are not there, do not fit the model, are of
// another model than the job's or have elements that are not finite; remarks every difference that
// the job asks for, and weights or limits that go unused. Reads headers, then tensors: all of them
// (`whole`), or as many as two seconds take.
Expected<CheckReport> check_weights(const Config& config, const ModelGraph& model, bool whole);

}  // namespace piper
