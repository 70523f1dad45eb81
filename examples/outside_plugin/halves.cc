// A pipeline in stages of equally many layers, with one more micro-batch in flight than 1F1B has.
#include <piper/strategy.hpp>

#include <algorithm>

namespace {

using piper::sdk::Filter;
using piper::sdk::Job;

std::uint32_t stage_of(std::size_t region, std::size_t regions, std::uint32_t stages) {
  return static_cast<std::uint32_t>(region * stages / regions);
}

void plan(Job& job) {
  const auto pp = job.axis("pp");
  const auto regions = job.regions();
  if (regions.size() < pp.size) {
    job.fail("stages",
             "expected at most " + std::to_string(regions.size()) + " stages, got " +
                 std::to_string(pp.size),
             pp.where);
  }
  job.claim_axis("pp");
  job.claim_order();
  for (std::size_t r = 0; r < regions.size(); ++r) {
    job.tag(Filter().region(regions[r].region), "PP", stage_of(r, regions.size(), pp.size));
  }
  const auto eager = static_cast<std::uint32_t>(job.get_i64("eager").value);
  for (std::uint32_t stage = 0; stage < pp.size; ++stage) {
    const piper_ranks ranks = job.at({{"pp", stage}});
    job.place(Filter().equals("PP", stage), ranks);
    std::vector<piper_action> order;
    const std::uint32_t ahead = std::min(pp.size - stage + eager, job.microbatches());
    std::uint32_t forward = 0;
    for (std::uint32_t backward = 0; backward < job.microbatches(); ++backward) {
      while (forward < std::min(backward + ahead, job.microbatches())) {
        order.push_back({stage, forward++, PIPER_FORWARD, 0});
      }
      order.push_back({stage, backward, PIPER_BACKWARD, 0});
    }
    job.order_chain(ranks, order);
  }
}

}  // namespace

PIPER_STRATEGY(plan)
