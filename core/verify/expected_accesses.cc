#include "core/verify/expected_accesses.h"

namespace piper {

ExpectedAccesses::ExpectedAccesses(const Plan& plan, const ModelGraph& model)
    : plan_(plan),
      accesses_(
          {model, plan.chunks, plan.buckets, plan.microbatches, plan.kind == Plan::Kind::train}),
      map_(plan, model) {}

void ExpectedAccesses::build(Report& report, std::uint32_t program) {
  id_ = program;
  program_ = &plan_.programs[program];
  chains_ = find_chains(plan_, *program_);
  map_.build(report, program, chains_);
}

Accessor ExpectedAccesses::accessor(std::uint32_t id) const {
  const Task& task = program_->tasks[id];
  Accessor of;
  of.op = task.op;
  of.program = id_;
  of.chunk = task.chunk;
  of.value = task.value;
  of.bucket = task.bucket;
  (counts_chains(task.op) ? of.chain : of.microbatch) = task.microbatch;
  if (is_routing(task.op)) {
    const auto reads = program_->reads_of(task);
    const Buffer::Kind kind =
        reads.empty() ? Buffer::Kind::activation : program_->buffer(reads[0]).kind;
    of.backward = kind == Buffer::Kind::gradient || kind == Buffer::Kind::routed_gradient;
    of.into_experts = !is_routed(kind);
  } else if (runs_chunk(task.op)) {
    const std::size_t buckets = plan_.chunks[index(task.chunk)].buckets.size();
    of.parameter_chains = {chains_.parameter.data() + chains_.first[id], buckets};
    of.gradient_chains = {chains_.gradient.data() + chains_.first[id], buckets};
  }
  return of;
}

void ExpectedAccesses::find(std::uint32_t id) {
  entries_.clear();
  accesses_.find(accessor(id), entries_);
  reads_.clear();
  writes_.clear();
  for (const Accesses::Entry& entry : entries_) {
    const BufferId buffer = map_.find(entry.content);
    if (entry.access != Access::writes) {
      reads_.push_back(buffer);
    }
    if (entry.access != Access::reads && entry.access != Access::keeps) {
      writes_.push_back(buffer);
    }
  }
}

}  // namespace piper
