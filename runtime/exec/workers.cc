#include "runtime/exec/workers.h"

#include <set>

namespace piper {
namespace {

std::set<std::pair<std::uint32_t, std::string>> names(const Plans& plans) {
  std::set<std::pair<std::uint32_t, std::string>> result;
  for (const Plan* plan : {&plans.train, &plans.evaluate}) {
    for (const Program& program : plan->programs) {
      for (const Stream& stream : program.streams) {
        for (const std::uint32_t rank : program.ranks) {
          if (stream.tasks.count > 0) {
            result.emplace(rank, stream.name);
          }
        }
      }
    }
  }
  return result;
}

}  // namespace

std::size_t count_workers(const Plans& plans) {
  return names(plans).size();
}

Workers::Workers(const Plans& plans, Device& device,
                 const std::function<void(std::uint32_t rank)>& on_start) {
  for (const auto& key : names(plans)) {
    const std::uint32_t rank = key.first;
    streams_[key] = device.make_stream("r" + std::to_string(rank) + " " + key.second,
                                       [on_start, rank] { on_start(rank); });
  }
}

void Workers::abandon() {
  for (const auto& [key, stream] : streams_) {
    stream->abandon();
  }
}

}  // namespace piper
