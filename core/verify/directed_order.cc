// plan.order: what the job's directives put in an order comes in that order on each compute stream.
// Found from the directives and the plan alone. Tasks of a stream are numbered in its order, so
// "all of this group before all of that one" compares the largest number with the smallest.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/verify/report.h"
#include "core/verify/rules.h"
#include "core/verify/verify.h"

namespace piper {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;
// The computations that an order can name.
constexpr std::array kOrdered{Op::forward, Op::backward, Op::backward_input, Op::backward_weight};

bool is_ordered(Op op) {
  return std::find(kOrdered.begin(), kOrdered.end(), op) != kOrdered.end();
}

class DirectedOrder {
 public:
  DirectedOrder(Report& report, const Annotated& annotated)
      : report_(report),
        plan_(report.plan),
        annotated_(annotated),
        tasks_(plan_.chunks.size() * plan_.microbatches * kOrdered.size(), kNobody) {
    if (annotated_.chains.empty() && annotated_.orders.empty()) {
      return;
    }
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      all_chunks_.push_back(c);
      for (const Tag& tag : plan_.chunks[c].tags) {
        tagged_[{tag.name, tag.index}].push_back(c);
      }
    }
    for (const Program& program : plan_.programs) {
      for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (is_ordered(task.op)) {
          tasks_[key(index(task.chunk), task.microbatch, task.op)] = t;
        }
      }
    }
  }

  void run() {
    for (const Annotated::Chain& chain : annotated_.chains) {
      for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
        if (plan_.programs[p].ranks == chain.ranks.ranks) {
          check(chain, p);
        }
      }
    }
    for (const Annotated::Order& order : annotated_.orders) {
      check(order);
    }
  }

 private:
  std::size_t key(std::size_t chunk, std::size_t microbatch, Op op) const {
    return (chunk * plan_.microbatches + microbatch) * kOrdered.size() +
           static_cast<std::size_t>(std::find(kOrdered.begin(), kOrdered.end(), op) -
                                    kOrdered.begin());
  }

  // The tasks of one group after another: the last of those so far, and of this one.
  struct Line {
    std::uint32_t before = kNobody, now = kNobody;
    void next_group() {
      before = now == kNobody ? before : now;
      now = kNobody;
    }
  };

  // `task` comes after `first`, if there is one.
  void after(std::uint32_t first, std::uint32_t task, std::uint32_t program, std::uint32_t origin) {
    if (first == kNobody || first < task) {
      return;
    }
    Diagnostic wrong =
        error("plan.order",
              report_.task({program, task}) + " runs before " + report_.task({program, first}) +
                  ", which " + annotated_.origins[origin].plugin + " orders before it",
              annotated_.origins[origin].where);
    report_.add(std::move(wrong));
  }

  static void latest(std::uint32_t& last, std::uint32_t task) {
    last = last == kNobody ? task : std::max(last, task);
  }

  // The chunks of one program with each index of tag PP.
  std::vector<std::vector<std::uint32_t>> stages_of(std::uint32_t program) const {
    std::vector<std::vector<std::uint32_t>> stages;
    const std::optional<TagId> tag = annotated_.model.find_tag("PP");
    for (std::uint32_t c = 0; tag && c < plan_.chunks.size(); ++c) {
      for (const Tag& own : plan_.chunks[c].tags) {
        if (plan_.chunks[c].program == program && own.name == *tag) {
          stages.resize(std::max<std::size_t>(stages.size(), own.index + 1));
          stages[own.index].push_back(c);
        }
      }
    }
    return stages;
  }

  // Pieces of a stage in order, backward ones reversed, as one action.
  void check(const Annotated::Chain& chain, std::uint32_t program) {
    const std::vector<std::vector<std::uint32_t>> stages = stages_of(program);
    Line line;
    std::uint32_t overlap = 0;
    for (const Action& action : chain.actions) {
      if (report_.full() || action.stage >= stages.size()) {
        return;
      }
      if (action.overlap == 0 || action.overlap != overlap) {
        line.next_group();
      }
      overlap = action.overlap;
      const std::vector<std::uint32_t>& pieces = stages[action.stage];
      std::uint32_t last = line.before;
      const auto visit = [&](std::uint32_t piece, Op op) {
        const std::uint32_t task = tasks_[key(piece, action.microbatch, op)];
        if (task != kNobody) {
          after(last, task, program, chain.origin);
          last = task;
          latest(line.now, task);
        }
      };
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        switch (action.pass) {
          case Pass::forward:
            visit(pieces[i], Op::forward);
            break;
          case Pass::backward:
            for (const Op op : {Op::backward, Op::backward_input, Op::backward_weight}) {
              visit(pieces[pieces.size() - 1 - i], op);
            }
            break;
          case Pass::backward_input:
            visit(pieces[pieces.size() - 1 - i], Op::backward_input);
            break;
          case Pass::backward_weight:
            visit(pieces[pieces.size() - 1 - i], Op::backward_weight);
            break;
          case Pass::update:
            break;
        }
      }
    }
  }

  bool selects(const Filter& filter, const Chunk& chunk) const {
    return std::all_of(filter.conditions.begin(), filter.conditions.end(),
                       [&](const Condition& condition) {
                         const std::optional<TagId> tag = annotated_.model.find_tag(condition.tag);
                         for (const Tag& own : chunk.tags) {
                           if (tag && own.name == *tag) {
                             return condition.holds(true, own.index);
                           }
                         }
                         return condition.tag == "MB" || condition.holds(false, 0);
                       });
  }

  // The chunks that a filter may select: those with a tag that must be equal, or all.
  const std::vector<std::uint32_t>& candidates(const Filter& filter) const {
    static const std::vector<std::uint32_t> nothing;
    for (const Condition& condition : filter.conditions) {
      const std::optional<TagId> tag = annotated_.model.find_tag(condition.tag);
      if (tag && condition.kind == Condition::Kind::equals) {
        const auto known = tagged_.find({*tag, condition.values[0]});
        return known == tagged_.end() ? nothing : known->second;
      }
    }
    return all_chunks_;
  }

  // Calls visit(program, task) for all that the filter selects. An order may have as many groups as
  // there are tasks, so it looks at little else.
  template <typename Visit>
  void for_each_selected(const Filter& filter, Visit visit) const {
    static constexpr std::pair<Pass, Op> kOpOfPass[] = {
        {Pass::forward, Op::forward},
        {Pass::backward, Op::backward},
        {Pass::backward_input, Op::backward_input},
        {Pass::backward_weight, Op::backward_weight}};
    std::uint32_t first = 0, end = plan_.microbatches;
    for (const Condition& condition : filter.conditions) {
      if (condition.tag == "MB" && condition.kind == Condition::Kind::equals) {
        first = std::min(end, condition.values[0]);
        end = std::min(end, first + 1);
      }
    }
    const auto has_microbatch = [&](std::uint32_t m) {
      return std::all_of(filter.conditions.begin(), filter.conditions.end(),
                         [&](const Condition& c) { return c.tag != "MB" || c.holds(true, m); });
    };
    for (const std::uint32_t c : candidates(filter)) {
      if (!selects(filter, plan_.chunks[c])) {
        continue;
      }
      for (const auto& [pass, op] : kOpOfPass) {
        if (!filter.passes.empty() &&
            std::find(filter.passes.begin(), filter.passes.end(), pass) == filter.passes.end()) {
          continue;
        }
        for (std::uint32_t m = first; m < end; ++m) {
          const std::uint32_t task = tasks_[key(c, m, op)];
          if (task != kNobody && has_microbatch(m)) {
            visit(plan_.chunks[c].program, task);
          }
        }
      }
    }
  }

  void check(const Annotated::Order& order) {
    std::vector<Line> lines(plan_.programs.size());
    std::vector<std::uint32_t> touched;  // programs
    for (const std::vector<Filter>& group : order.groups) {
      for (const Filter& filter : group) {
        for_each_selected(filter, [&](std::uint32_t program, std::uint32_t task) {
          Line& line = lines[program];
          if (line.now == kNobody) {
            touched.push_back(program);
          }
          if (!report_.full()) {
            after(line.before, task, program, order.origin);
          }
          latest(line.now, task);
        });
      }
      for (const std::uint32_t program : touched) {
        lines[program].next_group();
      }
      touched.clear();
    }
  }

  Report& report_;
  const Plan& plan_;
  const Annotated& annotated_;
  std::vector<std::uint32_t> all_chunks_;
  std::map<std::pair<TagId, std::uint32_t>, std::vector<std::uint32_t>> tagged_;  // chunks
  std::vector<std::uint32_t> tasks_;  // by chunk, micro-batch and pass: the task, or kNobody
};

}  // namespace

Status verify_order(const Plan& plan, const ModelGraph& model, const Annotated& annotated) {
  Report report(plan, model);
  DirectedOrder(report, annotated).run();
  return report.result();
}

}  // namespace piper
