// The most memory that a rank can need, at any timing.
#pragma once

#include <array>
#include <cstdint>

#include "core/plan/plan.h"

namespace piper {

// What can be live at most, what it is made of, and the computation that runs or has just ended
// then.
struct Peak {
  std::int64_t bytes = 0;
  TaskId task = none<TaskId>();  // none: before the first
  std::array<std::int64_t, kMemoryKinds> of_kind{};
};

// On a coordinate of a program; memory.cc has the method. The plan must be one that the verifier
// accepts.
Peak memory_peak(const Plan& plan, const ModelGraph& model, std::uint32_t program,
                 std::uint32_t coordinate);
std::int64_t peak_bytes(const Plan& plan, const ModelGraph& model, std::uint32_t program,
                        std::uint32_t coordinate);

}  // namespace piper
