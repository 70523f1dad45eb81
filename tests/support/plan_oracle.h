// The verifier's rules about order, and the memory bound, by brute force: every pair of tasks,
// every state. For small plans, to compare the real ones with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/plan/plan.h"

namespace piper::test {

// What is wrong with the order of a plan whose tasks and accesses are right; "" if nothing.
std::string find_fault(const Plan& plan);

// The most bytes that are live in any state that the program's streams and waits allow, over two
// periods; nothing where there are too many states to look at.
std::optional<std::int64_t> most_live_bytes(const Plan& plan, const ModelGraph& model,
                                            std::uint32_t program, std::uint32_t coordinate);

}  // namespace piper::test
