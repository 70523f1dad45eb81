// When the buffers of a program are freed, and where in the arena received values, gathered
// parameters and full gradients are, from the scheduled timeline.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/lower/synchronise.h"

namespace piper {

// What tasks must come after besides edges and data: (task, earlier), by task. A task's are
// pairs[first[task]] up to first[task + 1].
struct Predecessors {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  std::vector<std::uint32_t> first;
};

// Beside what it sets in the program: Buffer::free and offset, Program::arena_bytes.
struct Lifetimes {
  Predecessors after, after_previous;  // of the same period; of the one before
  std::vector<BufferId> frees;         // by task, likewise
  std::vector<std::uint32_t> frees_first;
};

// `timeline`: the tasks by start.
// `plan` has the micro-batches and rows.
Lifetimes choose_lifetimes(const Plan& plan, Program& program, const TaskTimes& times,
                           const std::vector<std::uint32_t>& timeline);

}  // namespace piper
