#include <algorithm>

#include "core/verify/rules.h"

namespace piper {

std::vector<std::vector<bool>> find_members(const Plan& plan) {
  std::vector<std::vector<bool>> members(plan.communicators.size());
  for (std::size_t c = 0; c < members.size(); ++c) {
    if (plan.communicators[c].kind == Communicator::Kind::collective) {
      members[c].assign(plan.world, false);
      for (const std::uint32_t rank : plan.communicators[c].ranks) {
        members[c][rank] = true;
      }
    }
  }
  return members;
}

bool covers(const Communicator& communicator, const Program& program) {
  std::vector<std::uint32_t> members = communicator.ranks, ranks = program.ranks;
  std::sort(members.begin(), members.end());
  std::sort(ranks.begin(), ranks.end());
  return communicator.kind == Communicator::Kind::collective && members == ranks;
}

}  // namespace piper
