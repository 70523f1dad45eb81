#include "runtime/tasks/parts.h"

#include <algorithm>

#include "core/plan/groups.h"

namespace piper {

Elements common(Elements a, Elements b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max<std::int64_t>(std::min(a.end(), b.end()) - begin, 0)};
}

// By the collectives of the plan.
Share share_of(const Plan& plan, BucketId bucket, std::uint32_t rank) {
  for (const Task& task : plan.programs[plan.seat(rank).program].tasks) {
    if (task.bucket == bucket && (task.op == Op::all_gather || task.op == Op::reduce_scatter)) {
      const Communicator& communicator = plan.communicators[index(task.communicator)];
      const GroupSeat seat = group_seat(communicator, rank);
      return {groups_of(communicator)[seat.group], seat.place};
    }
  }
  return {{rank}, 0};
}

Elements held(const Bucket& bucket, const Share& share, Kept what) {
  const std::int64_t all = bucket.padded_elements();
  if ((what == Kept::value || bucket.frozen) && bucket.kept_bytes() == bucket.bytes()) {
    return {0, all};
  }
  const std::int64_t count = all / static_cast<std::int64_t>(share.ranks.size());
  return {share.index * count, count};
}

std::optional<BucketSeat> find(const Plan& plan, const ModelGraph& model, ParameterId id,
                               std::uint32_t rank) {
  for (const BucketId bucket : plan.programs[plan.seat(rank).program].buckets) {
    std::int64_t offset = 0;
    for (const ParameterId held : plan.buckets[index(bucket)].parameters) {
      if (held == id) {
        return BucketSeat{bucket, offset};
      }
      offset += model.parameter(held).elements();
    }
  }
  return std::nullopt;
}

std::vector<std::uint32_t> ranks_of(const Plan& plan) {
  std::vector<std::uint32_t> ranks;
  for (const Program& program : plan.programs) {
    ranks.insert(ranks.end(), program.ranks.begin(), program.ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace piper
