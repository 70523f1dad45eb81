// The most bytes that can be live on a rank at any timing, exactly, by a minimum cut: for plans too
// large for brute force.
//
// A state of a rank is a set of events (starts and ends of tasks, over two periods) that holds,
// with each event, all that must come before it. Its bytes are a sum over its events: what a start
// allocates, less what an end frees. The state with most bytes is a closure of largest weight,
// which is what a minimum cut leaves of all that is allocated (J.-C. Picard, Maximal closure of a
// graph and applications to combinatorial problems, 1976).
#pragma once

#include <cstdint>

#include "core/plan/plan.h"

namespace piper::test {

struct MemoryCut {
  std::int64_t peak = 0;   // with the whole arena and what lives as long as the job
  std::int64_t arena = 0;  // its bytes
  // The most bytes of buffers in the arena, in any state; and the peak if their bytes were counted
  // only while they are live. Each rounded up to the arena's alignment.
  std::int64_t served = 0, peak_without_arena = 0;
};
MemoryCut cut_memory(const Plan& plan, const ModelGraph& model, std::uint32_t program,
                     std::uint32_t coordinate);

}  // namespace piper::test
