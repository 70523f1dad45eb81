#include "core/verify/chains.h"

#include <algorithm>

namespace piper {
namespace {

// The chain of a run: the last one, if that is of the same run, or the next.
std::uint32_t chain_of(std::uint32_t& last_run, std::uint32_t run, std::uint32_t& count) {
  count += last_run == run ? 0 : 1;
  last_run = run;
  return count - 1;
}

}  // namespace

Chains find_chains(const Plan& plan, const Program& program) {
  Chains chains;
  chains.first.assign(program.tasks.size(), Chains::kNone);
  chains.gathers.assign(plan.buckets.size(), 0);
  chains.reductions.assign(plan.buckets.size(), 0);
  std::vector<std::uint32_t> runs(plan.buckets.size(), 0);  // begun so far
  // The run that the last chain of each kind is of.
  std::vector<std::uint32_t> gathering(plan.buckets.size(), Chains::kNone), reducing = gathering;
  const std::vector<BucketId>* before = nullptr;  // what the last computation with buckets used
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const Task& task = program.tasks[t];
    if (!runs_chunk(task.op) || !valid(task.chunk)) {
      continue;
    }
    const std::vector<BucketId>& used = plan.chunks[index(task.chunk)].buckets;
    chains.first[t] = static_cast<std::uint32_t>(chains.parameter.size());
    for (const BucketId id : used) {
      const Bucket& bucket = plan.buckets[index(id)];
      const bool goes_on =
          before != nullptr && std::find(before->begin(), before->end(), id) != before->end();
      runs[index(id)] += goes_on ? 0 : 1;
      const std::uint32_t run = runs[index(id)];
      const bool gathers = bucket.zero == 3 && task.op != Op::backward_weight;
      const bool reduces = bucket.zero > 0 && !bucket.frozen &&
                           (task.op == Op::backward || task.op == Op::backward_weight);
      const bool one_reduction = bucket.zero == 1 || bucket.reduce == Span::step;
      chains.parameter.push_back(gathers ? chain_of(gathering[index(id)],
                                                    bucket.keep_gathered == Span::step ? 0 : run,
                                                    chains.gathers[index(id)])
                                         : Chains::kNone);
      chains.gradient.push_back(reduces ? chain_of(reducing[index(id)], one_reduction ? 0 : run,
                                                   chains.reductions[index(id)])
                                        : Chains::kNone);
    }
    if (!used.empty()) {
      before = &used;
    }
  }
  return chains;
}

}  // namespace piper
