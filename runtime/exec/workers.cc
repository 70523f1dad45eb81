#include "runtime/exec/workers.h"

namespace piper {

Workers::Workers(const Plans& plans, const std::vector<std::uint32_t>& ranks, Device& device,
                 const std::function<void(std::size_t local)>& on_start) {
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    for (const Plan* const plan : {&plans.train, &plans.evaluate}) {
      if (plan->programs.empty()) {
        continue;
      }
      for (const Stream& stream : plan->programs[plan->seat(ranks[local]).program].streams) {
        auto& worker = streams_[{ranks[local], stream.name}];
        if (stream.tasks.count > 0 && !worker) {
          worker = device.make_stream("r" + std::to_string(ranks[local]) + " " + stream.name,
                                      [on_start, local] { on_start(local); });
        }
      }
    }
  }
  std::erase_if(streams_, [](const auto& entry) { return !entry.second; });
}

void Workers::abandon() {
  for (const auto& [key, stream] : streams_) {
    stream->abandon();
  }
}

}  // namespace piper
