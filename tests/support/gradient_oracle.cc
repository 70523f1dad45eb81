// find_wrong_sum: a plan run symbolically, rank by rank.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/plan_oracle.h"

namespace piper::test {
namespace {

using Kind = Buffer::Kind;
using Contribution = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
using Sum = std::map<Contribution, std::uint32_t>;  // how often each is in it

void add(Sum& to, const Sum& more) {
  for (const auto& [contribution, times] : more) {
    to[contribution] += times;
  }
}

class Run {
 public:
  explicit Run(const Plan& plan) : plan_(plan) {
    for (const Program& program : plan.programs) {
      std::vector<std::uint32_t>& heads = heads_.emplace_back();
      for (const Stream& stream : program.streams) {
        heads.push_back(stream.tasks.begin);
      }
    }
    find_experts();
  }

  std::string run() {
    bool goes_on = true;
    while (goes_on && fault_.empty()) {
      goes_on = false;
      for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
        for (std::uint32_t s = 0; s < plan_.programs[p].streams.size(); ++s) {
          goes_on = step(p, s) || goes_on;
        }
      }
    }
    if (!fault_.empty()) {
      return fault_;
    }
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      for (std::uint32_t s = 0; s < plan_.programs[p].streams.size(); ++s) {
        if (!at_end(p, s)) {
          return "stuck";
        }
      }
    }
    return check_end();
  }

 private:
  // Of a rank and bucket: its sum, which shard that is, and whether it was updated and is whole.
  struct State {
    Sum gradient;
    std::uint32_t shard = 0;
    bool has_update = false, is_whole = false;
    std::map<std::uint32_t, Sum> full;  // by chain
  };

  bool at_end(std::uint32_t p, std::uint32_t s) const {
    const Range tasks = plan_.programs[p].streams[s].tasks;
    return heads_[p][s] == tasks.begin + tasks.count;
  }
  bool is_done(std::uint32_t p, TaskId task) const {
    return heads_[p][index(plan_.programs[p].task(task).stream)] > index(task);
  }
  const Task& head(std::uint32_t p, std::uint32_t s) const {
    return plan_.programs[p].tasks[heads_[p][s]];
  }
  bool is_ready(std::uint32_t p, const Task& task) const {
    const auto waits = plan_.programs[p].waits_of(task);
    return std::all_of(waits.begin(), waits.end(),
                       [&](const Wait& w) { return w.previous || is_done(p, w.task); });
  }

  // Runs the head of a stream if it can go; a collective takes the heads of all its programs.
  bool step(std::uint32_t p, std::uint32_t s) {
    if (at_end(p, s) || !is_ready(p, head(p, s))) {
      return false;
    }
    const Task& task = head(p, s);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members{{p, s}};
    if (valid(task.communicator) && !is_point_to_point(task.op)) {
      const std::vector<std::uint32_t>& ranks = plan_.communicators[index(task.communicator)].ranks;
      for (std::uint32_t q = 0; q < plan_.programs.size(); ++q) {
        if (q == p ||
            std::find(ranks.begin(), ranks.end(), plan_.programs[q].ranks[0]) == ranks.end()) {
          continue;
        }
        bool found = false;
        for (std::uint32_t t = 0; t < plan_.programs[q].streams.size(); ++t) {
          if (!at_end(q, t) && head(q, t).communicator == task.communicator &&
              is_ready(q, head(q, t))) {
            members.emplace_back(q, t);
            found = true;
          }
        }
        if (!found) {
          return false;
        }
      }
    }
    execute(task, p);
    for (const auto& [q, t] : members) {
      ++heads_[q][t];
    }
    return true;
  }

  State& state(std::uint32_t rank, BucketId bucket) { return states_[{rank, index(bucket)}]; }

  std::vector<std::vector<std::uint32_t>> groups(const Task& task) const {
    const Communicator& all = plan_.communicators[index(task.communicator)];
    const std::size_t size = all.group_size == 0 ? all.ranks.size() : all.group_size;
    std::vector<std::vector<std::uint32_t>> groups(all.ranks.size() / size);
    for (std::size_t i = 0; i < all.ranks.size(); ++i) {
      groups[i / size].push_back(all.ranks[i]);
    }
    return groups;
  }

  void execute(const Task& task, std::uint32_t p) {
    const Program& program = plan_.programs[p];
    switch (task.op) {
      case Op::backward:
      case Op::backward_weight:
        for (const BufferId id : program.writes_of(task)) {
          const Buffer& buffer = program.buffer(id);
          for (const std::uint32_t rank : program.ranks) {
            const Sum one{{{index(task.chunk), task.microbatch, rank}, 1}};
            if (buffer.kind == Kind::parameter_gradient) {
              add(state(rank, buffer.bucket).gradient, one);
            } else if (buffer.kind == Kind::full_gradient) {
              add(state(rank, buffer.bucket).full[buffer.microbatch], one);
            }
          }
        }
        return;
      case Op::reduce_scatter:
        for (const auto& group : groups(task)) {
          Sum sum;
          for (const std::uint32_t rank : group) {
            add(sum, state(rank, task.bucket).full[task.microbatch]);
          }
          for (std::uint32_t i = 0; i < group.size(); ++i) {
            add(state(group[i], task.bucket).gradient, sum);
            state(group[i], task.bucket).shard = i;
            state(group[i], task.bucket).full.erase(task.microbatch);
          }
        }
        return;
      case Op::all_reduce:
        return all_reduce(task);
      case Op::update:
        for (const std::uint32_t rank : program.ranks) {
          update(rank, task.bucket);
        }
        return;
      case Op::all_gather:
        if (plan_.buckets[index(task.bucket)].zero < 3) {
          for (const auto& group : groups(task)) {
            for (std::uint32_t i = 0; i < group.size(); ++i) {
              State& own = state(group[i], task.bucket);
              own.is_whole = own.has_update && own.shard == i;
            }
          }
        }
        return;
      default:
        return;
    }
  }

  void all_reduce(const Task& task) {
    for (const auto& group : groups(task)) {
      Sum sum;
      for (const std::uint32_t rank : group) {
        add(sum, state(rank, task.bucket).gradient);
        if (state(rank, task.bucket).shard != state(group[0], task.bucket).shard) {
          fault_ = "different shards are summed";
        }
        if (expert(task.bucket, rank) != expert(task.bucket, group[0])) {
          fault_ = "different experts are summed";
        }
      }
      for (const std::uint32_t rank : group) {
        state(rank, task.bucket).gradient = sum;
      }
    }
  }

  void update(std::uint32_t rank, BucketId bucket) {
    Sum expected;
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      const Chunk& chunk = plan_.chunks[c];
      if (!chunk.has_backward ||
          std::find(chunk.buckets.begin(), chunk.buckets.end(), bucket) == chunk.buckets.end()) {
        continue;
      }
      for (std::uint32_t m = 0; m < plan_.microbatches; ++m) {
        const bool runs = chunk.microbatches.empty() ||
                          std::find(chunk.microbatches.begin(), chunk.microbatches.end(), m) !=
                              chunk.microbatches.end();
        for (const std::uint32_t other : plan_.programs[chunk.program].ranks) {
          if (runs && expert(bucket, other) == expert(bucket, rank)) {
            expected[{c, m, other}] = 1;
          }
        }
      }
    }
    if (state(rank, bucket).gradient != expected) {
      fault_ = "rank " + std::to_string(rank) + " updates bucket " + std::to_string(index(bucket)) +
               " with another sum";
    }
    state(rank, bucket).has_update = true;
  }

  // The one sharding of the tests: the groups of a bucket's all-to-alls on its program.
  void find_experts() {
    for (const Program& program : plan_.programs) {
      for (const Task& task : program.tasks) {
        if (task.op == Op::all_to_all) {
          for (const auto& group : groups(task)) {
            for (std::uint32_t i = 0; i < group.size(); ++i) {
              expert_of_[group[i]] = i;
            }
          }
        }
      }
    }
  }
  std::uint32_t expert(BucketId bucket, std::uint32_t rank) const {
    const auto known = expert_of_.find(rank);
    return plan_.buckets[index(bucket)].expert_parts == 1 || known == expert_of_.end()
               ? 0
               : known->second;
  }

  std::string check_end() {
    for (auto& [key, own] : states_) {
      const Bucket& bucket = plan_.buckets[key.second];
      if (!own.full.empty()) {
        return "a full gradient is left";
      }
      if (!own.has_update || (bucket.zero > 0 && bucket.zero < 3 && !own.is_whole)) {
        return "a bucket is not updated everywhere";
      }
    }
    return "";
  }

  const Plan& plan_;
  std::vector<std::vector<std::uint32_t>> heads_;                    // by program and stream
  std::map<std::pair<std::uint32_t, std::uint32_t>, State> states_;  // by rank and bucket
  std::map<std::uint32_t, std::uint32_t> expert_of_;                 // by rank
  std::string fault_;
};

}  // namespace

std::string find_wrong_sum(const Plan& plan) {
  return Run(plan).run();
}

}  // namespace piper::test
