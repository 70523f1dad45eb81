// A stage a rank, in the order of GPipe: the same actions packed as integers, or one by one with
// filters. What they cost the host is measured by planner.cc.
#include <piper/strategy.hpp>

#include <string_view>
#include <vector>

namespace {

using piper::sdk::Filter;
using piper::sdk::Job;

Filter action(std::uint32_t stage, std::uint32_t microbatch, piper_pass pass) {
  return Filter().equals("PP", stage).equals("MB", microbatch).pass(pass);
}

// Forwards of all micro-batches, then backwards of all.
template <typename Add>
void gpipe(std::uint32_t microbatches, Add&& add) {
  for (const piper_pass pass : {PIPER_FORWARD, PIPER_BACKWARD}) {
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      add(m, pass);
    }
  }
}

void plan(Job& job) {
  const std::uint32_t stages = job.axis("pp").size;
  const auto regions = job.regions();
  const std::size_t count = regions.size();
  const std::string_view way = job.get_str("way").value;
  job.claim_axis("pp");
  job.claim_order();
  for (std::uint32_t s = 0; s < stages; ++s) {
    const piper_ranks ranks = job.at({{"pp", s}});
    Filter members;
    for (std::size_t r = count * s / stages; r < count * (s + 1) / stages; ++r) {
      members.region(regions[r].region);
    }
    job.tag(members, "PP", s);
    job.place(Filter().equals("PP", s), ranks);
    if (way == "chain") {
      std::vector<piper_action> actions;
      gpipe(job.microbatches(), [&](std::uint32_t m, piper_pass pass) {
        actions.push_back({s, m, static_cast<std::uint32_t>(pass), 0});
      });
      job.order_chain(ranks, actions);
    } else if (way == "filter") {
      std::vector<std::vector<Filter>> groups;
      groups.reserve(2 * std::size_t{job.microbatches()});
      gpipe(job.microbatches(), [&](std::uint32_t m, piper_pass pass) {
        groups.emplace_back().push_back(action(s, m, pass));
      });
      job.order(groups);
    }
  }
}

}  // namespace

PIPER_STRATEGY(plan)
