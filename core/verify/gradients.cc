// plan.reduction, plan.update and plan.materialised: each contribution to a bucket's gradient goes
// into one reduction over the shards, where there are any, and one over the ranks that hold the
// same part; each home updates each trained bucket exactly once, and gathers what it updated a
// shard of. (accesses.cc has their order.)
#include <algorithm>
#include <map>
#include <string>

#include "core/plan/groups.h"
#include "core/verify/chains.h"
#include "core/verify/rules.h"

namespace piper {
namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;  // of ranks

class Gradients {
 public:
  explicit Gradients(Report& report) : report_(report), plan_(report.plan) {}

  void run() {
    const std::size_t homes = plan_.programs.size() * plan_.buckets.size();
    counts_.resize(homes);
    find_experts();
    for (std::uint32_t p = 0; p < plan_.programs.size() && !report_.full(); ++p) {
      program(p);
    }
    if (!trains()) {
      return;
    }
    for (std::uint32_t b = 0; b < plan_.buckets.size() && !report_.full(); ++b) {
      if (!plan_.buckets[b].frozen) {  // check_tasks refuses what touches a frozen bucket
        bucket(b);
      }
    }
  }

 private:
  struct Count {
    std::uint32_t reductions = 0, updates = 0, gathers = 0;
    CommId reduction = none<CommId>();
    CommId shards = none<CommId>();  // of its gathers and reduce-scatters
  };

  bool trains() const { return plan_.kind == Plan::Kind::train; }
  Count& count(std::uint32_t b, std::uint32_t program) {
    return counts_[std::size_t{b} * plan_.programs.size() + program];
  }
  std::string where(std::uint32_t b, std::uint32_t program) const {
    return "bucket " + std::to_string(b) + " on " + report_.ranks(plan_.programs[program].ranks);
  }

  // The block of experts of each rank: its place in its group of the chunk's all-to-alls, or of
  // those of the experts that the chunk reads from.
  void find_experts() {
    std::vector<CommId> routed_by(plan_.chunks.size(), none<CommId>());
    for (const Program& program : plan_.programs) {
      for (const Task& task : program.tasks) {
        if (!is_routing(task.op)) {
          continue;
        }
        CommId& known = routed_by[index(task.chunk)];
        if (valid(known) && groups_of(plan_.communicators[index(known)]) !=
                                groups_of(plan_.communicators[index(task.communicator)])) {
          report_.add("plan.form", "chunk " + std::to_string(index(task.chunk)) +
                                       " is routed over several expert groups");
        }
        known = task.communicator;
      }
    }
    expert_of_.assign(plan_.buckets.size(), {});
    if (std::none_of(plan_.chunks.begin(), plan_.chunks.end(),
                     [](const Chunk& chunk) { return chunk.experts; })) {
      return;
    }
    std::vector<CommId> of_value(report_.model.values.size() * plan_.programs.size(),
                                 none<CommId>());
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      const Chunk& chunk = plan_.chunks[c];
      if (!chunk.experts) {
        continue;
      }
      const auto at = [&](ValueId value) -> CommId& {
        return of_value[index(value) * plan_.programs.size() + chunk.program];
      };
      for (const ValueId input : chunk.inputs) {
        routed_by[c] = valid(routed_by[c]) ? routed_by[c] : at(input);
      }
      for (const ValueId output : chunk.outputs) {
        at(output) = routed_by[c];
      }
      if (chunk.expert_parts > 1 && valid(routed_by[c])) {
        for (const BucketId bucket : chunk.buckets) {
          note_experts(index(bucket), plan_.communicators[index(routed_by[c])]);
        }
      }
    }
  }

  void note_experts(std::uint32_t b, const Communicator& communicator) {
    expert_of_[b].resize(plan_.world, kNobody);
    for (const std::vector<std::uint32_t>& group : groups_of(communicator)) {
      for (std::uint32_t i = 0; i < group.size(); ++i) {
        std::uint32_t& part = expert_of_[b][group[i]];
        if (part != kNobody && part != i) {
          report_.add("plan.form", "bucket " + std::to_string(b) + ": rank " +
                                       std::to_string(group[i]) + " has two blocks of experts");
        }
        part = i;
      }
    }
  }

  std::uint32_t expert(std::uint32_t b, std::uint32_t rank) const {
    return expert_of_[b].empty() ? 0 : expert_of_[b][rank];
  }

  void program(std::uint32_t p) {
    const Program& program = plan_.programs[p];
    const bool shards = std::any_of(program.buckets.begin(), program.buckets.end(),
                                    [&](BucketId b) { return plan_.buckets[index(b)].zero > 0; });
    std::vector<std::vector<std::uint32_t>> gathered, reduced;  // times, by bucket and chain
    if (shards) {
      const Chains chains = find_chains(plan_, program);
      gathered.resize(plan_.buckets.size());
      reduced.resize(plan_.buckets.size());
      for (const BucketId b : program.buckets) {
        gathered[index(b)].assign(chains.gathers[index(b)], 0);
        reduced[index(b)].assign(chains.reductions[index(b)], 0);
      }
    }
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
      const Task& task = program.tasks[t];
      const std::uint32_t b = index(task.bucket);
      if (task.op == Op::all_reduce) {
        ++count(b, p).reductions;
        count(b, p).reduction = task.communicator;
      } else if (task.op == Op::update) {
        ++count(b, p).updates;
      } else if (task.op == Op::reduce_scatter) {
        ++reduced[b][task.microbatch];
        over_shards({p, t});
      } else if (task.op == Op::all_gather) {
        if (plan_.buckets[b].zero == 3) {
          ++gathered[b][task.microbatch];
        }
        ++count(b, p).gathers;
        over_shards({p, t});
      }
    }
    for (std::uint32_t b = 0; b < gathered.size(); ++b) {
      once(gathered[b], b, p, "plan.materialised", "gather");
      once(reduced[b], b, p, "plan.reduction", "reduce-scatter");
    }
  }

  void once(const std::vector<std::uint32_t>& times, std::uint32_t b, std::uint32_t p,
            const char* code, const char* what) {
    for (std::size_t k = 0; k < times.size(); ++k) {
      if (times[k] != 1) {
        report_.add(code, where(b, p) + ", chain " + std::to_string(k) + ": expected one " + what +
                              ", got " + std::to_string(times[k]));
      }
    }
  }

  // Gathers and reduce-scatters of a bucket agree on who has which shard, of the same experts.
  void over_shards(TaskPlace at) {
    const Task& task = plan_.programs[at.program].tasks[at.task];
    const std::uint32_t b = index(task.bucket);
    const char* const code = task.op == Op::all_gather ? "plan.materialised" : "plan.reduction";
    const Groups groups = groups_of(plan_.communicators[index(task.communicator)]);
    CommId& known = count(b, at.program).shards;
    if (valid(known) && known != task.communicator &&
        groups_of(plan_.communicators[index(known)]) != groups) {
      report_.add(code, report_.task(at) + " has other groups than the rest of its bucket's shards",
                  at);
    }
    if (valid(known)) {
      return;
    }
    known = task.communicator;
    for (const std::vector<std::uint32_t>& group : groups) {
      for (const std::uint32_t rank : group) {
        if (expert(b, rank) != expert(b, group[0])) {
          report_.add(code,
                      report_.task(at) + " is over rank " + std::to_string(group[0]) +
                          " and rank " + std::to_string(rank) + ", which hold different experts",
                      at);
          return;
        }
      }
    }
  }

  // The ranks that hold the same part: by block of experts and shard.
  bool find_same(std::uint32_t b, Groups& same) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> parts;
    const Bucket& bucket = plan_.buckets[b];
    for (const std::uint32_t home : bucket.homes) {
      Groups groups{plan_.programs[home].ranks};
      if (bucket.zero > 0) {
        if (!valid(count(b, home).shards)) {
          report_.add("plan.reduction", where(b, home) + ": nothing says who has which shard");
          return false;
        }
        groups = groups_of(plan_.communicators[index(count(b, home).shards)]);
      }
      for (const std::vector<std::uint32_t>& group : groups) {
        for (std::uint32_t i = 0; i < group.size(); ++i) {
          parts[{expert(b, group[i]), bucket.zero > 0 ? i : 0}].push_back(group[i]);
        }
      }
    }
    for (auto& [key, ranks] : parts) {
      std::sort(ranks.begin(), ranks.end());
      same.push_back(std::move(ranks));
    }
    std::sort(same.begin(), same.end());
    return true;
  }

  std::string text(const Groups& groups) const {
    std::string list;
    for (const std::vector<std::uint32_t>& group : groups) {
      list += (list.empty() ? "" : "; ") + report_.ranks(group);
    }
    return list;
  }

  void bucket(std::uint32_t b) {
    const Bucket& bucket = plan_.buckets[b];
    Groups same;
    if (!find_same(b, same)) {
      return;
    }
    const std::uint32_t expected =
        std::any_of(same.begin(), same.end(), [](const auto& group) { return group.size() > 1; })
            ? 1
            : 0;
    for (const std::uint32_t home : bucket.homes) {
      const Count& got = count(b, home);
      if (got.reductions != expected) {
        report_.add("plan.reduction", where(b, home) + ": expected " +
                                          (expected == 0 ? "no reduction (it lives on one rank)"
                                                         : "one reduction over " + text(same)) +
                                          ", got " + std::to_string(got.reductions));
      } else if (expected == 1) {
        Groups members = groups_of(plan_.communicators[index(got.reduction)]);
        for (std::vector<std::uint32_t>& group : members) {
          std::sort(group.begin(), group.end());
        }
        std::sort(members.begin(), members.end());
        if (members != same) {
          report_.add("plan.reduction", where(b, home) + ": expected a reduction over " +
                                            text(same) + ", got one over " + text(members));
        }
      }
      if (got.updates != 1) {
        report_.add("plan.update",
                    where(b, home) + ": expected one update, got " + std::to_string(got.updates));
      }
      if ((bucket.zero == 1 || bucket.zero == 2) && got.gathers != 1) {
        report_.add("plan.materialised", where(b, home) + ": expected one gather of what it " +
                                             "updated, got " + std::to_string(got.gathers));
      }
    }
  }

  static constexpr std::uint32_t kNobody = 0xffffffff;

  Report& report_;
  const Plan& plan_;
  std::vector<Count> counts_;                          // by bucket and program
  std::vector<std::vector<std::uint32_t>> expert_of_;  // by bucket and rank; empty: no experts
};

}  // namespace

void check_gradients(Report& report) {
  Gradients(report).run();
}

}  // namespace piper
