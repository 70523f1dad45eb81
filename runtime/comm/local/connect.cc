#include "runtime/comm/local/connect.h"

#include "core/base/diagnostic.h"
#include "core/plan/groups.h"
#include "runtime/comm/delayed.h"
#include "runtime/comm/local/channel.h"
#include "runtime/comm/local/collective.h"

namespace piper {

std::vector<Communications> LocalConnections::connect(const Plan& plan) {
  std::vector<Communications> result(plan.world, Communications(plan.communicators.size()));
  for (std::size_t id = 0; id < plan.communicators.size(); ++id) {
    const Communicator& communicator = plan.communicators[id];
    if (communicator.kind == Communicator::Kind::collective) {
      for (const std::vector<std::uint32_t>& ranks : groups_of(communicator)) {
        const auto& members = group(communicator.stream, ranks);
        for (std::size_t m = 0; m < ranks.size(); ++m) {
          result[ranks[m]][id].collective = members[m];
        }
      }
      continue;
    }
    const std::vector<std::uint32_t>& from = plan.programs[communicator.from].ranks;
    const std::vector<std::uint32_t>& to = plan.programs[communicator.to].ranks;
    PIPER_CHECK(from.size() == to.size(), "groups of different size exchange values");
    for (std::size_t i = 0; i < from.size(); ++i) {
      const Ends& ends = pair(communicator.stream, from[i], to[i]);
      result[from[i]][id].point_to_point = ends.first;
      result[to[i]][id].point_to_point = ends.second;
    }
  }
  return result;
}

const LocalConnections::Ends& LocalConnections::pair(const std::string& stream, std::uint32_t from,
                                                     std::uint32_t to) {
  Ends& ends = pairs_[{stream, from, to}];
  if (!ends.first) {
    const auto channel = std::make_shared<LocalChannel>(cancellation_, from, to);
    for (auto* const end : {&ends.first, &ends.second}) {
      *end = std::make_shared<LocalPointToPoint>(channel);
      *end = emulate_.delays() ? delay(*end, emulate_) : *end;
    }
  }
  return ends;
}

const std::vector<std::shared_ptr<Collective>>& LocalConnections::group(
    const std::string& stream, const std::vector<std::uint32_t>& ranks) {
  auto& members = groups_[{stream, ranks}];
  if (members.empty()) {
    const auto group = std::make_shared<LocalGroup>(cancellation_, ranks);
    for (std::uint32_t m = 0; m < ranks.size(); ++m) {
      std::shared_ptr<Collective> member = std::make_shared<LocalCollective>(group, m);
      members.push_back(emulate_.delays() ? delay(std::move(member), emulate_) : member);
    }
  }
  return members;
}

}  // namespace piper
