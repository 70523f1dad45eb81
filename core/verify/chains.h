// The chains of sharded buckets on one program, found from its compute stream and the tables alone:
// a chain is a maximal run of uses of a bucket with no computation of another bucket in between.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace piper {

struct Chains {
  static constexpr std::uint32_t kNone = 0xffffffff;

  // By task: where its chunk's buckets begin in the two lists below; kNone for other tasks.
  std::vector<std::uint32_t> first;
  // The chain in which a computation reads a bucket's gathered parameter, and adds to its full
  // gradient; kNone where it does not.
  std::vector<std::uint32_t> parameter, gradient;
  // By bucket: how many there are.
  std::vector<std::uint32_t> gathers, reductions;
};

Chains find_chains(const Plan& plan, const Program& program);

}  // namespace piper
