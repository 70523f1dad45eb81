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
        facts_(facts),
        expected_(plan_, model_, facts),
        members_(find_members(report.plan)),
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
        expected_.find(t);
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

  static Affine times(Affine bytes, std::uint32_t n) {
    return {bytes.per_row * n, bytes.fixed * n};
  }

  // All rows of an expert group may arrive at one of its members.
  Affine expected_size(const Buffer& buffer) const {
    const bool has_value = valid(buffer.value);
    const bool has_bucket = valid(buffer.bucket);
    const Bucket* const bucket = has_bucket ? &plan_.buckets[index(buffer.bucket)] : nullptr;
    switch (buffer.kind) {
      case Kind::input:
      case Kind::activation:
      case Kind::gradient:
        return has_value ? model_.value(buffer.value).bytes() : buffer.bytes;
      case Kind::routed:
      case Kind::routed_gradient:
        return has_value ? times(model_.value(buffer.value).bytes(), parts_of(buffer))
                         : buffer.bytes;
      case Kind::saved: {
        if (!valid(buffer.chunk)) {
          return buffer.bytes;
        }
        const Chunk& chunk = plan_.chunks[index(buffer.chunk)];
        return times(chunk.saved_bytes, chunk.expert_parts);
      }
      case Kind::parameter:
        return has_bucket ? Affine{0, bucket->kept_bytes()} : buffer.bytes;
      case Kind::parameter_gradient:
        return has_bucket ? Affine{0, bucket->shard_gradient_bytes()} : buffer.bytes;
      case Kind::gathered:
        return has_bucket ? Affine{0, bucket->bytes()} : buffer.bytes;
      case Kind::full_gradient:
        return has_bucket ? Affine{0, bucket->gradient_bytes()} : buffer.bytes;
      default:
        return buffer.bytes;
    }
  }

  // The expert side of a routed value: its reader, or who of this program made it.
  std::uint32_t parts_of(const Buffer& buffer) const {
    if (valid(buffer.chunk) && plan_.chunks[index(buffer.chunk)].experts) {
      return plan_.chunks[index(buffer.chunk)].expert_parts;
    }
    for (const ChunkId maker : facts_.makers[index(buffer.value)]) {
      if (plan_.chunks[index(maker)].program == at_.program) {
        return plan_.chunks[index(maker)].expert_parts;
      }
    }
    return 1;
  }

  void buffer_sizes() {
    for (const Buffer& buffer : program_->buffers) {
      if (buffer.bytes != expected_size(buffer)) {
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
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::update:
        return expect_bucket();
      case Op::all_to_all:
        return expect_route();
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
    const std::vector<bool>& members = members_[index(task_->communicator)];
    for (const std::uint32_t rank : program_->ranks) {
      if (!members[rank]) {
        bad_task("uses communicator " + std::to_string(index(task_->communicator)) +
                 ", of which rank " + std::to_string(rank) + " is not a member");
        return false;
      }
    }
    if (task_->op <= Op::broadcast) {
      return true;
    }
    if (plan_.communicators[index(task_->communicator)].group_size != 0) {
      bad_task("expects a result from every rank, but its communicator has groups");
      return false;
    }
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      const bool takes_part = task_->op != Op::token_count || loss_programs_[p];
      if (takes_part && !members[plan_.programs[p].ranks[0]]) {
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
    if (!runs_microbatch(chunk, task_->microbatch)) {
      bad_task("runs a micro-batch that is not its chunk's");
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
    const bool gathers = task_->op == Op::all_gather;
    const Bucket& bucket = plan_.buckets[index(task_->bucket)];
    if (!(gathers && bucket.zero == 3) && !expect_training()) {
      return false;
    }
    const auto& buckets = program_->buckets;
    const bool is_home = std::find(buckets.begin(), buckets.end(), task_->bucket) != buckets.end();
    if (!is_home || (plan_.buckets[index(task_->bucket)].frozen && !gathers)) {
      report_.add(task_->op == Op::update ? "plan.update"
                  : gathers               ? "plan.materialised"
                                          : "plan.reduction",
                  report_.task(at_) + (is_home ? " is of a frozen bucket"
                                               : " is of a bucket that does not live there"),
                  at_);
      return false;
    }
    if (task_->op == Op::update) {
      return true;
    }
    if (task_->op != Op::all_reduce && !expect_chain(bucket)) {
      return false;
    }
    const std::int64_t bytes = gathers                       ? bucket.bytes()
                               : task_->op == Op::all_reduce ? bucket.shard_gradient_bytes()
                                                             : bucket.gradient_bytes();
    if (task_->bytes != Affine{0, bytes}) {
      bad_task(std::string("moves another number of bytes than its bucket") +
               (gathers ? " has" : "'s gradient has"));
    }
    return expect_communicator();
  }

  // Of a gather or reduce-scatter: its chain is there, and its groups are those of the shards.
  bool expect_chain(const Bucket& bucket) {
    const Chains& chains = expected_.chains();
    const std::uint32_t b = index(task_->bucket);
    const std::uint32_t count = task_->op == Op::reduce_scatter ? chains.reductions[b]
                                : bucket.zero == 3              ? chains.gathers[b]
                                                                : 1;
    if (bucket.zero == 0 || task_->microbatch >= count) {
      bad_task("is of chain " + std::to_string(task_->microbatch) + " of its bucket, which has " +
               std::to_string(bucket.zero == 0 ? 0 : count));
      return false;
    }
    return expect_own_groups(bucket.shards, "shards");
  }

  // Groups of this program's ranks, each as long as that.
  bool expect_own_groups(std::uint32_t size, const char* what) {
    if (!expect_communicator()) {
      return false;
    }
    const Communicator& groups = plan_.communicators[index(task_->communicator)];
    const std::size_t got = groups.group_size == 0 ? groups.ranks.size() : groups.group_size;
    if (!covers(groups, *program_) || got != size) {
      bad_task("expects groups of " + std::to_string(size) + " " + what + " on its own ranks");
      return false;
    }
    return true;
  }

  bool expect_route() {
    if (!valid(task_->chunk)) {
      bad_task("has no chunk");
      return false;
    }
    const Chunk& chunk = plan_.chunks[index(task_->chunk)];
    if (chunk.program != at_.program || !chunk.experts ||
        !runs_microbatch(chunk, task_->microbatch)) {
      bad_task("routes what is not for experts of this program");
      return false;
    }
    Affine bytes;
    for (const BufferId id : program_->reads_of(*task_)) {
      bytes = bytes + program_->buffer(id).bytes;
    }
    if (program_->reads_of(*task_).empty() || task_->bytes != bytes) {
      bad_task("moves another number of bytes than it reads");
      return false;
    }
    return expect_own_groups(chunk.expert_parts, "parts of experts");
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

  std::size_t pass_of(std::size_t chunk, std::size_t microbatch) const {
    return (chunk * plan_.microbatches + microbatch) * kPasses;
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
  ExpectedAccesses expected_;
  std::vector<std::vector<bool>> members_;  // by communicator and rank
  std::vector<std::uint8_t> passes_;        // by chunk, micro-batch, pass
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
