// The communicators of ranks that are threads of one process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/cancellation.h"

namespace piper {

class LocalConnections {
 public:
  // Links delay as `emulate` says.
  LocalConnections(Cancellation& cancellation, const EmulateConfig& emulate)
      : cancellation_(cancellation), emulate_(emulate) {}

  // By rank: those of the plan's list, made in its order. One of equal kind, group and stream as
  // one of an earlier plan is the same: plans run one after the other.
  std::vector<Communications> connect(const Plan& plan);

 private:
  using Ends = std::pair<std::shared_ptr<PointToPoint>, std::shared_ptr<PointToPoint>>;

  const Ends& pair(const std::string& stream, std::uint32_t from, std::uint32_t to);
  // By member.
  const std::vector<std::shared_ptr<Collective>>& group(const std::string& stream,
                                                        const std::vector<std::uint32_t>& ranks);

  Cancellation& cancellation_;
  EmulateConfig emulate_;
  std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, Ends> pairs_;
  std::map<std::pair<std::string, std::vector<std::uint32_t>>,
           std::vector<std::shared_ptr<Collective>>>
      groups_;
};

}  // namespace piper
