// A plan's tasks as steps: what starts and ends together is one, with edges between them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/simulate/simulate.h"

namespace piper {

struct Steps {
  std::vector<std::uint32_t> base;  // by program: its first task's number; one more than programs
  std::vector<std::uint32_t> step_of;       // by task number; a step is named by its first task
  std::vector<std::uint64_t> length;        // by step
  std::vector<bool> transfers;              // by step: moves bytes between ranks
  std::vector<std::uint32_t> first, after;  // successors, by step
  std::vector<std::uint32_t> before;        // by step: how many it comes after
  std::uint32_t count() const { return static_cast<std::uint32_t>(step_of.size()); }
  bool is_step(std::uint32_t n) const { return step_of[n] == n; }
};

Steps find_steps(const Plan& plan, const Durations& durations, bool atomic_pairs);

}  // namespace piper
