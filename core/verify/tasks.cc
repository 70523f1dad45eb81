// plan.form, third part: the tasks are those that the chunks ask for, and each reads and writes
// what the tables say. Found again here from the chunks and buckets, so a plan that lost a task or
// a data edge is refused, whatever its waits say.
#include <algorithm>
#include <string>

#include "core/plan/text.h"
#include "core/verify/expected_accesses.h"
#include "core/verify/rules.h"

namespace piper {
namespace {

using Kind = Buffer::Kind;

class Tasks {
 public:
  Tasks(Report& report, const ModelFacts& facts)
      : report_(report),
        plan_(report.plan),
        model_(report.model),
        expected_(plan_, model_, facts),
        passes_(plan_.chunks.size() * plan_.microbatches * kPasses, 0) {
    loss_programs_.resize(plan_.programs.size(), false);
    for (const Chunk& chunk : plan_.chunks) {
      if (chunk.has_loss) {
        loss_programs_[chunk.program] = true;
      }
    }
  }

  void run() {
    for (std::uint32_t p = 0; p < plan_.programs.size() && !report_.full(); ++p) {
      program(p);
    }
    passes();
  }

 private:
  static constexpr std::size_t kPasses = 4;  // forward, B, BI, BW: as Op has them

  bool trains() const { return plan_.kind == Plan::Kind::train; }

  void program(std::uint32_t id) {
    program_ = &plan_.programs[id];
    at_.program = id;
    expected_.build(report_, id);
    buffer_sizes();
    producer_.assign(program_->buffers.size(), kNobody);
    std::size_t counts = 0, norms = 0, reports = 0;
    for (std::uint32_t t = 0; t < program_->tasks.size() && !report_.full(); ++t) {
      at_.task = t;
      task_ = &program_->tasks[t];
      counts += task_->op == Op::token_count ? 1 : 0;
      norms += task_->op == Op::grad_norm ? 1 : 0;
      reports += task_->op == Op::loss_report ? 1 : 0;
      if (may_be_here()) {
        expected_.find(*task_);
        compare(expected_.reads(), program_->reads_of(*task_), "read");
        compare_writes();
      }
      produce();
    }
    if (report_.full()) {
      return;
    }
    exactly(counts, loss_programs_[id] ? 1 : 0, "token_count");
    exactly(norms, trains() ? 1 : 0, "grad_norm");
    exactly(reports, 1, "loss_report");
    for (std::size_t b = 0; b < producer_.size(); ++b) {
      if (!program_->buffers[b].persistent() && producer_[b] == kNobody) {
        bad("program " + std::to_string(id) + ": nothing writes " +
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

  void buffer_sizes() {
    for (const Buffer& buffer : program_->buffers) {
      Affine expected = buffer.bytes;
      if (buffer.kind <= Kind::gradient && valid(buffer.value)) {
        expected = model_.value(buffer.value).bytes();
      } else if (buffer.kind == Kind::saved && valid(buffer.chunk)) {
        expected = plan_.chunks[index(buffer.chunk)].saved_bytes;
      } else if (buffer.kind == Kind::parameter && valid(buffer.bucket)) {
        expected = {0, plan_.buckets[index(buffer.bucket)].bytes()};
      } else if (buffer.kind == Kind::parameter_gradient && valid(buffer.bucket)) {
        expected = {0, plan_.buckets[index(buffer.bucket)].gradient_bytes()};
      }
      if (buffer.bytes != expected) {
        bad("program " + std::to_string(at_.program) + ": " + report_.buffer(buffer) +
            " has another size than the model says");
      }
      if (buffer.kind <= Kind::activation && valid(buffer.value) &&
          model_.value(buffer.value).is_input() != (buffer.kind == Kind::input)) {
        bad("program " + std::to_string(at_.program) + ": " + report_.buffer(buffer) +
            " is of another kind than its value");
      }
    }
  }

  // False, with an error, for a task that has no place in this plan.
  bool may_be_here() {
    switch (task_->op) {
      case Op::forward:
      case Op::backward:
      case Op::backward_input:
      case Op::backward_weight:
        return expect_chunk();
      case Op::send:
      case Op::recv:
        return expect_message();
      case Op::input:
        return true;
      case Op::token_count:
      case Op::loss_report:
        return expect_communicator();
      case Op::all_reduce:
      case Op::update:
        return expect_bucket();
      case Op::grad_norm:
        return expect_training() && expect_communicator();
      default:
        bad_task("is of a kind that has no rule");
        return false;
    }
  }

  bool expect_training() {
    if (!trains()) {
      bad_task("has no place in a plan that evaluates");
    }
    return trains();
  }

  bool expect_communicator() {
    const bool is_there =
        valid(task_->communicator) &&
        plan_.communicators[index(task_->communicator)].kind == Communicator::Kind::collective;
    if (!is_there) {
      bad_task("has no collective communicator");
      return false;
    }
    const std::vector<std::uint32_t>& members =
        plan_.communicators[index(task_->communicator)].ranks;
    for (const std::uint32_t rank : program_->ranks) {
      if (!std::binary_search(members.begin(), members.end(), rank)) {
        bad_task("uses communicator " + std::to_string(index(task_->communicator)) +
                 ", of which rank " + std::to_string(rank) + " is not a member");
        return false;
      }
    }
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      const bool takes_part =
          task_->op == Op::token_count ? loss_programs_[p] : task_->op != Op::all_reduce;
      if (takes_part &&
          !std::binary_search(members.begin(), members.end(), plan_.programs[p].ranks[0])) {
        bad_task("expects a result from every rank that has a part in it, but rank " +
                 std::to_string(plan_.programs[p].ranks[0]) + " is not in communicator " +
                 std::to_string(index(task_->communicator)));
        return false;
      }
    }
    return true;
  }

  bool expect_chunk() {
    if (!valid(task_->chunk)) {
      bad_task("has no chunk");
      return false;
    }
    const Chunk& chunk = plan_.chunks[index(task_->chunk)];
    if (chunk.program != at_.program) {
      bad_task("runs a chunk of program " + std::to_string(chunk.program));
      return false;
    }
    if (program_->streams[index(task_->stream)].kind != Stream::Kind::compute) {
      bad_task("is not on a compute stream");
      return false;
    }
    if (task_->op != Op::forward && !expect_training()) {
      return false;
    }
    std::uint8_t& count = passes_[pass_of(index(task_->chunk), task_->microbatch) +
                                  static_cast<std::size_t>(task_->op)];
    if (count < 2) {
      ++count;
    }
    return true;
  }

  bool expect_message() {
    const bool is_channel =
        valid(task_->communicator) &&
        plan_.communicators[index(task_->communicator)].kind == Communicator::Kind::point_to_point;
    if (!valid(task_->value) || !valid(task_->peer) || !is_channel) {
      bad_task("has no value, no peer or no point-to-point communicator");
      return false;
    }
    if (task_->bytes != model_.value(task_->value).bytes()) {
      bad_task("moves another number of bytes than its value has");
    }
    return true;
  }

  bool expect_bucket() {
    if (!valid(task_->bucket)) {
      bad_task("has no bucket");
      return false;
    }
    if (!expect_training()) {
      return false;
    }
    const auto& buckets = program_->buckets;
    const bool is_home = std::find(buckets.begin(), buckets.end(), task_->bucket) != buckets.end();
    if (!is_home || plan_.buckets[index(task_->bucket)].frozen) {
      report_.add(task_->op == Op::update ? "plan.update" : "plan.reduction",
                  report_.task(at_) + (is_home ? " is of a frozen bucket"
                                               : " is of a bucket that does not live there"),
                  at_);
      return false;
    }
    if (task_->op == Op::update) {
      return true;
    }
    if (task_->bytes != Affine{0, plan_.buckets[index(task_->bucket)].gradient_bytes()}) {
      bad_task("moves another number of bytes than its bucket's gradient has");
    }
    return expect_communicator();
  }

  // The inputs of a program are delivered at once, in any order.
  void compare_writes() {
    const std::span<const BufferId> got = program_->writes_of(*task_);
    std::vector<BufferId> sorted;
    if (task_->op == Op::input) {
      sorted.assign(got.begin(), got.end());
      std::sort(sorted.begin(), sorted.end());
    }
    compare(expected_.writes(), task_->op == Op::input ? std::span<const BufferId>(sorted) : got,
            "write");
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

  std::size_t pass_of(std::size_t chunk, std::size_t microbatch) const {
    return (chunk * plan_.microbatches + microbatch) * kPasses;
  }

  void passes() {
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      const bool has_backward = trains() && plan_.chunks[c].has_backward;
      for (std::uint32_t m = 0; m < plan_.microbatches && !report_.full(); ++m) {
        const std::uint8_t* const count = passes_.data() + pass_of(c, m);
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
  ExpectedAccesses expected_;
  std::vector<std::uint8_t> passes_;  // by chunk, micro-batch, pass
  std::vector<bool> loss_programs_;
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
