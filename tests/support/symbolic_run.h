// Runs a plan rank by rank with expressions in place of tensors, in one of the many orders that its
// streams, waits and messages allow, for several periods. Slow and obvious; it shares no code with
// core/verify.
//
// What it finds: a task that uses a buffer that is not there or that another running task uses; two
// buffers at one place of the arena at once; more live bytes than peak_bytes() allows; members of a
// collective, or ends of a message, that do not fit; ranks that are stuck when sends hold nothing;
// and any difference between the state that is left and that of one device: parameters, optimizer,
// gradients, loss, token count and norm.
#pragma once

#include <cstdint>
#include <string>

#include "core/plan/plan.h"

namespace piper::test {

struct SymbolicRun {
  std::string fault;  // "": the run ended with the state of one device
  // By rank: the most bytes that were live in any state.
  std::vector<std::int64_t> peak;
};

// The plan must be well formed (numbers in range). `seed` says which order.
SymbolicRun run_symbolically(const Plan& plan, const ModelGraph& model, std::uint32_t seed,
                             std::uint32_t periods = 2);

}  // namespace piper::test
