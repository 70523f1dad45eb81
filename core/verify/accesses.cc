// Who may touch a buffer when. Each kind of buffer has stages that come one after another in a
// period (what is written first, then its readers; contributions, reduction, norm, update); a task
// of a later stage must be after every task of the stage before, by waits and the order of streams.
// Two tasks of one stage of which one writes must be in some order. And what lives on to the next
// period must be done with in this one.
#include <algorithm>
#include <array>
#include <string>

#include "core/plan/node_name.h"
#include "core/verify/rules.h"

namespace piper {
namespace {

using Kind = Buffer::Kind;

constexpr std::uint32_t kMostStages = 4;

// The stage of an access, from 0.
std::uint32_t stage_of(Kind kind, Op op, bool writes, bool gathers_in_place) {
  switch (kind) {
    case Kind::input:
    case Kind::activation:
    case Kind::gradient:
    case Kind::gathered:
    case Kind::routed:
    case Kind::routed_gradient:
    case Kind::token_count:
    case Kind::grad_norm:
      return writes ? 0 : 1;
    case Kind::saved:
      return op == Op::forward || op == Op::recompute ? 0 : op == Op::backward_weight ? 2 : 1;
    case Kind::parameter:
      return op == Op::update ? 1 : gathers_in_place ? 2 : 0;
    case Kind::parameter_gradient:
      return op == Op::all_reduce ? 1 : op == Op::grad_norm ? 2 : op == Op::update ? 3 : 0;
    case Kind::full_gradient:
      return op == Op::reduce_scatter ? 1 : 0;
    case Kind::optimizer:
      return 0;
    case Kind::loss_sum:
      return op == Op::loss_report ? 1 : 0;
  }
  return 0;
}

class Accesses {
 public:
  Accesses(Report& report, std::uint32_t program, const LocalOrder& order,
           const AccessIndex& accesses)
      : report_(report),
        id_(program),
        program_(report.plan.programs[program]),
        order_(order),
        accesses_(accesses) {
    for (auto& last : last_) {
      last.assign(order.streams(), kNobody);
    }
    reader_.assign(order.streams(), kNobody);
  }

  void run() {
    const std::size_t errors = report_.count();
    for_each_buffer([this](Uses uses) {
      stages(uses);
      same_stage(uses);
    });
    // What is out of order in one period would only be said again of two.
    if (report_.count() == errors) {
      for_each_buffer([this](Uses uses) {
        if (buffer_->persistent()) {
          next_period(uses);
        }
      });
    }
  }

 private:
  static constexpr std::uint32_t kNobody = 0xffffffff;
  using Uses = std::span<const AccessIndex::Access>;

  template <typename Check>
  void for_each_buffer(Check check) {
    for (std::uint32_t b = 0; b < program_.buffers.size() && !report_.full(); ++b) {
      buffer_ = &program_.buffers[b];
      if (const Uses uses = accesses_.of(b); !uses.empty()) {
        check(uses);
      }
    }
  }

  std::uint32_t stage(AccessIndex::Access use) const {
    const Task& task = program_.tasks[use.task];
    // A stage of ZeRO below 3 gathers what the update left, into the parameter itself.
    const bool gathers_in_place =
        task.op == Op::all_gather && report_.plan.buckets[index(task.bucket)].zero < 3;
    return stage_of(buffer_->kind, task.op, use.writes != 0, gathers_in_place);
  }
  std::string task(std::uint32_t task) const { return report_.task({id_, task}); }
  std::string name() const { return report_.buffer(*buffer_); }

  // Every use must be after the last use, on each stream, of the stage before it. (Uses come in the
  // order of the sequence, so the last one that is seen is the last of its stream.)
  void stages(Uses uses) {
    std::uint32_t stages_used = 0;
    std::uint32_t written = 0, repeated = 0;
    for (const AccessIndex::Access use : uses) {
      const std::uint32_t bit = 1u << stage(use);
      repeated |= stages_used & bit;
      written |= use.writes != 0 ? bit : 0;
      last_[stage(use)][order_.stream(use.task)] = use.task;
      stages_used |= bit;
    }
    contended_ = written & repeated;
    if ((stages_used & (stages_used - 1)) != 0) {
      for (const AccessIndex::Access use : uses) {
        const std::uint32_t own = stage(use);
        std::uint32_t before = own;
        while (before > 0 && (stages_used & (1u << (before - 1))) == 0) {
          --before;
        }
        // An update follows the norm since it reads the norm; said there.
        const bool is_known = buffer_->kind == Kind::parameter_gradient && own == 3 && before == 3;
        if (before > 0 && !is_known) {
          after(use, before - 1);
        }
      }
    }
    for (const AccessIndex::Access use : uses) {
      last_[stage(use)][order_.stream(use.task)] = kNobody;
    }
  }

  void after(AccessIndex::Access use, std::uint32_t stage_before) {
    for (const std::uint32_t other : last_[stage_before]) {
      if (other != kNobody && other != use.task && !order_.before(other, use.task)) {
        report_order(other, use.task);
        return;
      }
    }
  }

  void report_order(std::uint32_t first, std::uint32_t second) {
    const bool is_late = order_.before(second, first);
    const Op op = program_.tasks[second].op;
    std::string code = "plan.missing_wait";
    std::string text;
    if (buffer_->kind == Kind::gathered || op == Op::all_gather) {
      code = "plan.materialised";
      text = task(second) + " uses " + name() + " which " + task(first) +
             (op == Op::all_gather ? " changes" : " gathers");
    } else if (buffer_->kind == Kind::parameter) {
      code = "plan.update";
      text = task(second) + " changes " + name() + " which " + task(first) + " reads";
    } else if (buffer_->kind == Kind::parameter_gradient || buffer_->kind == Kind::full_gradient) {
      code = op == Op::update ? "plan.update" : "plan.reduction";
      text = task(second) + " uses " + name() + " which " + task(first) +
             (program_.tasks[first].op == Op::all_reduce ? " reduces" : " contributes to");
    } else {
      text = task(second) + " reads " + name() + " which " + task(first) + " writes";
    }
    if (text == last_text_) {
      return;
    }
    last_text_ = text;
    report_.add(code, text + (is_late ? ", but runs before it" : ", but does not wait for it"),
                {id_, second});
  }

  // In the order of the sequence: a write must be after the write before it and the reads since, a
  // read after the last write; of one stage only, the rest is known already.
  void same_stage(Uses uses) {
    for (std::uint32_t s = 0; s < kMostStages; ++s) {
      if ((contended_ & (1u << s)) == 0) {
        continue;
      }
      std::uint32_t writer = kNobody;
      bool has_readers = false;
      for (const AccessIndex::Access use : uses) {
        if (stage(use) != s) {
          continue;
        }
        if (writer != kNobody && writer != use.task && !order_.before(writer, use.task)) {
          race(writer, use.task);
          std::fill(reader_.begin(), reader_.end(), kNobody);
          return;
        }
        if (use.writes == 0) {
          reader_[order_.stream(use.task)] = use.task;
          has_readers = true;
          continue;
        }
        writer = use.task;
        if (has_readers) {
          for (std::uint32_t& reader : reader_) {
            if (reader != kNobody && reader != use.task && !order_.before(reader, use.task)) {
              race(reader, use.task);
            }
            reader = kNobody;
          }
          has_readers = false;
        }
      }
      if (has_readers) {
        std::fill(reader_.begin(), reader_.end(), kNobody);
      }
    }
  }

  void race(std::uint32_t first, std::uint32_t second) {
    report_.add("plan.race",
                task(first) + " and " + task(second) + " both use " + name() +
                    ", at least one of them writes it, and neither waits for the other",
                {id_, second});
  }

  // A use in the next period must be after this period's uses, where one of the two writes.
  void next_period(Uses uses) {
    auto& last_write = last_[0];
    auto& last_use = last_[1];
    bool is_written = false;
    for (const AccessIndex::Access use : uses) {
      const std::uint32_t s = order_.stream(use.task);
      last_use[s] = use.task;
      if (use.writes != 0) {
        last_write[s] = use.task;
        is_written = true;
      }
    }
    for (const AccessIndex::Access use : uses) {
      if (!is_written || report_.full()) {
        break;
      }
      const auto& others = use.writes != 0 ? last_use : last_write;
      const auto unordered = std::find_if(others.begin(), others.end(), [&](std::uint32_t other) {
        return other != kNobody && !order_.before_next(other, use.task);
      });
      if (unordered != others.end()) {
        report_.add("plan.race",
                    task(use.task) + " uses " + name() + " in the next period while " +
                        task(*unordered) + " may still use it in this one",
                    {id_, use.task});
        break;
      }
    }
    std::fill(last_write.begin(), last_write.end(), kNobody);
    std::fill(last_use.begin(), last_use.end(), kNobody);
  }

  Report& report_;
  std::uint32_t id_;
  const Program& program_;
  const LocalOrder& order_;
  const AccessIndex& accesses_;
  const Buffer* buffer_ = nullptr;
  std::array<std::vector<std::uint32_t>, kMostStages> last_;  // by stage and stream: the last use
  std::vector<std::uint32_t> reader_;                         // by stream: the last reader
  std::uint32_t contended_ = 0;  // stages of the buffer with several uses, one of which writes
  std::string last_text_;
};

}  // namespace

bool check_cycle(Report& report, std::uint32_t program, LocalOrder& order) {
  if (order.build(report.plan.programs[program])) {
    return true;
  }
  const auto cycle = order.cycle();
  Diagnostic diagnostic =
      error("plan.cycle",
            std::to_string(cycle.size()) + (cycle.size() == 1 ? " task waits" : " tasks wait") +
                " in a circle, by the waits and streams of one program",
            report.where({program, cycle[0]}));
  const NodeNames names(report.plan, report.model);
  const auto name = [&](std::uint32_t task) {
    return names.of(report.plan, program, report.plan.programs[program].tasks[task]);
  };
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Task& task = report.plan.programs[program].tasks[cycle[i]];
    for (const Wait& wait : report.plan.programs[program].waits_of(task)) {
      const std::uint32_t awaited = index(wait.task);
      const std::uint32_t next = cycle[(i + 1) % cycle.size()];
      if (!wait.previous && order.stream(awaited) == order.stream(next) && awaited >= next) {
        diagnostic.note(
            name(cycle[i]) + " waits for " + name(awaited) +
            (awaited == next ? "" : ", which comes after " + name(next) + " on its stream"));
        break;
      }
    }
  }
  report.add(std::move(diagnostic));
  return false;
}

void check_accesses(Report& report, std::uint32_t program, const LocalOrder& order,
                    const AccessIndex& accesses) {
  Accesses(report, program, order, accesses).run();
}

}  // namespace piper
