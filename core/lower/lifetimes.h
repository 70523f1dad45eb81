// When the buffers of a program are freed, and which slots of the arena received values and
// gathered parameters have, from the scheduled timeline.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/lower/synchronise.h"

namespace piper {

// Beside what it sets in the program: Buffer::free and slot, Program::slots.
struct Lifetimes {
  // (task, earlier): what a task must come after besides edges and data, by task; a task's are
  // after[first[task]] up to first[task + 1].
  std::vector<std::pair<std::uint32_t, std::uint32_t>> after;
  std::vector<std::uint32_t> after_first;
  std::vector<BufferId> frees;  // by task, likewise
  std::vector<std::uint32_t> frees_first;
};

// `timeline`: the tasks by start.
Lifetimes choose_lifetimes(Program& program, const TaskTimes& times,
                           const std::vector<std::uint32_t>& timeline);

}  // namespace piper
