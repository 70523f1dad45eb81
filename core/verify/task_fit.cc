#include "core/verify/task_fit.h"

#include <algorithm>
#include <string>

namespace piper {

TaskFit::TaskFit(Report& report)
    : report_(report),
      plan_(report.plan),
      model_(report.model),
      members_(find_members(report.plan)),
      loss_programs_(report.plan.programs.size(), false) {
  for (const Chunk& chunk : plan_.chunks) {
    if (chunk.has_loss) {
      loss_programs_[chunk.program] = true;
    }
  }
}

void TaskFit::bad_task(const std::string& message) {
  report_.add("plan.form", report_.task(at_) + ' ' + message, at_);
}

bool TaskFit::holds(TaskPlace at, const Chains& chains) {
  at_ = at;
  program_ = &plan_.programs[at.program];
  task_ = &program_->tasks[at.task];
  chains_ = &chains;
  switch (task_->op) {
    case Op::forward:
    case Op::backward:
    case Op::backward_input:
    case Op::backward_weight:
    case Op::recompute:
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
    case Op::statistic:
    case Op::state_update:
      break;
  }
  bad_task("is of a kind that has no rule");
  return false;
}

bool TaskFit::expect_training() {
  if (!trains()) {
    bad_task("has no place in a plan that evaluates");
  }
  return trains();
}

bool TaskFit::expect_communicator() {
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
  if (traits(task_->op).address != Address::program) {
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

bool TaskFit::expect_chunk() {
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
  return true;
}

bool TaskFit::expect_message() {
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

bool TaskFit::expect_bucket() {
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
bool TaskFit::expect_chain(const Bucket& bucket) {
  const Chains& chains = *chains_;
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
bool TaskFit::expect_own_groups(std::uint32_t size, const char* what) {
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

bool TaskFit::expect_route() {
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

}  // namespace piper
