// plan.form, third part: the tasks are those that the chunks ask for, and each reads and writes
// what the tables say. Found again here from the chunks and buckets, so a plan that lost a task or
// a data edge is refused, whatever its waits say.
#include <algorithm>
#include <array>
#include <string>

#include "core/plan/text.h"
#include "core/verify/expected_accesses.h"
#include "core/verify/rules.h"
#include "core/verify/task_fit.h"

namespace piper {
namespace {

using Kind = Buffer::Kind;

class Tasks {
 public:
  Tasks(Report& report, const ModelFacts& facts)
      : report_(report),
        plan_(report.plan),
        model_(report.model),
        facts_(facts),
        fit_(report),
        expected_(plan_, model_),
        passes_(plan_.chunks.size() * plan_.microbatches * kPasses.size(), 0) {}

  void run() {
    for (std::uint32_t p = 0; p < plan_.programs.size() && !report_.full(); ++p) {
      program(p);
    }
    passes();
  }

 private:
  static constexpr std::array kPasses{Op::forward, Op::backward, Op::backward_input,
                                      Op::backward_weight, Op::recompute};

  bool trains() const { return plan_.kind == Plan::Kind::train; }

  void program(std::uint32_t id) {
    program_ = &plan_.programs[id];
    at_.program = id;
    expected_.build(report_, id);
    check_buffer_sizes(report_, facts_, id);
    producer_.assign(program_->buffers.size(), kNobody);
    std::size_t counts = 0, norms = 0, reports = 0;
    for (std::uint32_t t = 0; t < program_->tasks.size() && !report_.full(); ++t) {
      at_.task = t;
      task_ = &program_->tasks[t];
      counts += task_->op == Op::token_count ? 1 : 0;
      norms += task_->op == Op::grad_norm ? 1 : 0;
      reports += task_->op == Op::loss_report ? 1 : 0;
      if (fit_.holds(at_, expected_.chains())) {
        count_pass();
        expected_.find(t);
        compare(expected_.reads(), program_->reads_of(*task_), "read");
        compare_writes();
      }
      produce();
    }
    if (report_.full()) {
      return;
    }
    exactly(counts, fit_.has_loss(id) ? 1 : 0, "token_count");
    exactly(norms, trains() ? 1 : 0, "grad_norm");
    exactly(reports, 1, "loss_report");
    for (std::size_t b = 0; b < producer_.size(); ++b) {
      if (!program_->buffers[b].persistent() && producer_[b] == kNobody) {
        const bool is_gathered = program_->buffers[b].kind == Kind::gathered;
        report_.add(is_gathered ? "plan.materialised" : "plan.form",
                    "program " + std::to_string(id) + ": nothing writes " +
                        report_.buffer(program_->buffers[b]));
      }
    }
  }

  void bad(std::string message) { report_.add("plan.form", std::move(message)); }
  void bad_task(const std::string& message) {
    report_.add("plan.form", report_.task(at_) + ' ' + message, at_);
  }

  void exactly(std::size_t got, std::size_t expected, const char* what) {
    if (got != expected) {
      bad("program " + std::to_string(at_.program) + ": expected " + std::to_string(expected) +
          " task" + (expected == 1 ? " " : "s ") + what + ", got " + std::to_string(got));
    }
  }

  // The inputs of a program are delivered at once, in any order.
  void compare_writes() {
    const std::span<const BufferId> got = program_->writes_of(*task_);
    if (task_->op != Op::input) {
      return compare(expected_.writes(), got, "write");
    }
    std::vector<BufferId> expected = expected_.writes(), sorted(got.begin(), got.end());
    std::sort(expected.begin(), expected.end());
    std::sort(sorted.begin(), sorted.end());
    compare(expected, sorted, "write");
  }

  // Equal lists pass at once; else one error says what is missing, or too much.
  void compare(const std::vector<BufferId>& expected, std::span<const BufferId> got,
               const std::string& verb) {
    if (std::equal(expected.begin(), expected.end(), got.begin(), got.end())) {
      return;
    }
    for (const BufferId buffer : expected) {
      if (!valid(buffer)) {
        bad_task("must " + verb + " a buffer that its program does not have");
        return;
      }
      if (std::count(got.begin(), got.end(), buffer) == 0) {
        bad_task("does not " + verb + " " + report_.buffer(program_->buffer(buffer)));
        return;
      }
    }
    for (const BufferId buffer : got) {
      if (std::count(expected.begin(), expected.end(), buffer) == 0) {
        bad_task(verb + "s " + report_.buffer(program_->buffer(buffer)) + ", which it should not");
        return;
      }
    }
    bad_task(verb + "s its buffers in another order than its chunk, bucket or value says");
  }

  // Every buffer that a task allocates has one task that fills it.
  void produce() {
    for (const BufferId id : program_->writes_of(*task_)) {
      const Buffer& buffer = program_->buffer(id);
      if (buffer.persistent() || (buffer.kind == Kind::saved && task_->op == Op::backward_input)) {
        continue;
      }
      std::uint32_t& producer = producer_[index(id)];
      if (producer != kNobody && buffer.kind == Kind::full_gradient) {
        continue;  // the first of the chain fills it, the others add to it
      }
      if (producer != kNobody) {
        bad_task("writes " + report_.buffer(buffer) + ", as does " +
                 report_.task({at_.program, producer}));
      }
      producer = at_.task;
      if (index(buffer.alloc) != at_.task) {
        report_.add("plan.release",
                    report_.task(at_) + " fills " + report_.buffer(buffer) + ", which " +
                        report_.task({at_.program, index(buffer.alloc)}) + " allocates",
                    at_);
      }
    }
  }

  void count_pass() {
    const auto pass = std::find(kPasses.begin(), kPasses.end(), task_->op);
    if (pass != kPasses.end()) {
      std::uint8_t& count = passes_[pass_of(index(task_->chunk), task_->microbatch) +
                                    static_cast<std::size_t>(pass - kPasses.begin())];
      count = static_cast<std::uint8_t>(std::min(count + 1, 2));
    }
  }

  std::size_t pass_of(std::size_t chunk, std::size_t microbatch) const {
    return (chunk * plan_.microbatches + microbatch) * kPasses.size();
  }

  void passes() {
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      const bool has_backward = trains() && plan_.chunks[c].has_backward;
      for (std::uint32_t m = 0; m < plan_.microbatches && !report_.full(); ++m) {
        const std::uint8_t* const count = passes_.data() + pass_of(c, m);
        if (!runs_microbatch(plan_.chunks[c], m)) {
          continue;  // expect_chunk refuses what is there
        }
        if (count[0] != 1) {
          bad(pass_name(c, m) + ": expected one forward, got " +
              (count[0] == 0 ? "none" : "several"));
        }
        const bool is_whole = count[1] == 1 && count[2] == 0 && count[3] == 0;
        const bool is_split = count[1] == 0 && count[2] == 1 && count[3] == 1;
        const bool is_absent = count[1] + count[2] + count[3] == 0;
        if (has_backward ? !(is_whole || is_split) : !is_absent) {
          bad(pass_name(c, m) + ": expected " +
              (has_backward ? "one backward, or one backward_input and one backward_weight"
                            : "no backward") +
              ", got " + amount(count[1]) + " backward, " + amount(count[2]) +
              " backward_input and " + amount(count[3]) + " backward_weight");
        }
        const bool recomputes = has_backward && plan_.chunks[c].recompute;
        if (count[4] != (recomputes ? 1 : 0)) {
          bad(pass_name(c, m) + ": expected " + (recomputes ? "one" : "no") + " recompute, got " +
              amount(count[4]));
        }
      }
    }
  }

  std::string pass_name(std::uint32_t chunk, std::uint32_t microbatch) const {
    return tags_of(plan_, model_, static_cast<ChunkId>(chunk)) + " mb " +
           std::to_string(microbatch);
  }

  static std::string amount(std::uint8_t count) {
    return count == 0 ? "no" : count == 1 ? "one" : "several";
  }

  static constexpr std::uint32_t kNobody = 0xffffffff;

  Report& report_;
  const Plan& plan_;
  const ModelGraph& model_;
  const ModelFacts& facts_;
  TaskFit fit_;
  ExpectedAccesses expected_;
  std::vector<std::uint8_t> passes_;     // by chunk, micro-batch, pass
  std::vector<std::uint32_t> producer_;  // by buffer of the program: its first writer
  const Program* program_ = nullptr;
  const Task* task_ = nullptr;
  TaskPlace at_;
};

}  // namespace

void check_tasks(Report& report, const ModelFacts& facts) {
  Tasks(report, facts).run();
}

}  // namespace piper
