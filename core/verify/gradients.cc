// plan.reduction and plan.update: each bucket's gradient is combined over its homes exactly once,
// and each home updates each trained bucket exactly once. (accesses.cc has their order.)
#include <algorithm>
#include <string>

#include "core/verify/rules.h"

namespace piper {

void check_gradients(Report& report) {
  const Plan& plan = report.plan;
  if (plan.kind != Plan::Kind::train) {
    return;
  }
  const std::size_t programs = plan.programs.size();
  struct Count {
    std::uint32_t reductions = 0, updates = 0;
    CommId communicator = none<CommId>();
  };
  std::vector<Count> counts(programs * plan.buckets.size());
  for (std::uint32_t p = 0; p < programs; ++p) {
    for (const Task& task : plan.programs[p].tasks) {
      if (task.op == Op::all_reduce) {
        Count& count = counts[index(task.bucket) * programs + p];
        ++count.reductions;
        count.communicator = task.communicator;
      } else if (task.op == Op::update) {
        ++counts[index(task.bucket) * programs + p].updates;
      }
    }
  }
  for (std::uint32_t b = 0; b < plan.buckets.size() && !report.full(); ++b) {
    const Bucket& bucket = plan.buckets[b];
    std::vector<std::uint32_t> ranks;
    for (const std::uint32_t home : bucket.homes) {
      const std::vector<std::uint32_t>& members = plan.programs[home].ranks;
      ranks.insert(ranks.end(), members.begin(), members.end());
    }
    std::sort(ranks.begin(), ranks.end());
    if (bucket.frozen) {
      continue;  // check_tasks refuses what touches a frozen bucket
    }
    const std::uint32_t expected = ranks.size() > 1 ? 1 : 0;
    for (const std::uint32_t home : bucket.homes) {
      const Count& count = counts[std::size_t{b} * programs + home];
      const std::string where =
          "bucket " + std::to_string(b) + " on " + report.ranks(plan.programs[home].ranks);
      if (count.reductions != expected) {
        report.add("plan.reduction",
                   where + ": expected " +
                       (expected == 0 ? "no reduction (it lives on one rank)"
                                      : "one reduction over " + report.ranks(ranks)) +
                       ", got " + std::to_string(count.reductions));
      } else if (expected == 1) {
        const std::vector<std::uint32_t>& members =
            plan.communicators[index(count.communicator)].ranks;
        if (members != ranks) {
          report.add("plan.reduction", where + ": expected a reduction over " +
                                           report.ranks(ranks) + ", got one over " +
                                           report.ranks(members));
        }
      }
      if (count.updates != 1) {
        report.add("plan.update",
                   where + ": expected one update, got " + std::to_string(count.updates));
      }
    }
  }
}

}  // namespace piper
