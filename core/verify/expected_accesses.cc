#include "core/verify/expected_accesses.h"

#include <algorithm>

namespace piper {

using Kind = Buffer::Kind;

ExpectedAccesses::ExpectedAccesses(const Plan& plan, const ModelGraph& model,
                                   const ModelFacts& facts)
    : plan_(plan), model_(model), facts_(facts), map_(plan, model) {
  consumers_.resize(model.values.size());
  for (std::uint32_t c = 0; c < plan.chunks.size(); ++c) {
    for (const ValueId input : plan.chunks[c].inputs) {
      consumers_[index(input)].push_back(static_cast<ChunkId>(c));
    }
  }
}

void ExpectedAccesses::build(Report& report, std::uint32_t program) {
  program_ = &plan_.programs[program];
  has_loss_ = std::any_of(plan_.chunks.begin(), plan_.chunks.end(), [&](const Chunk& chunk) {
    return chunk.has_loss && chunk.program == program;
  });
  chains_ = find_chains(plan_, *program_);
  map_.build(report, program, chains_);
}

void ExpectedAccesses::find(std::uint32_t id) {
  const Task& task = program_->tasks[id];
  reads_.clear();
  writes_.clear();
  switch (task.op) {
    case Op::forward:
      return forward(id);
    case Op::recompute:
      return recompute(id);
    case Op::backward:
    case Op::backward_input:
    case Op::backward_weight:
      return backward(id);
    case Op::send:
    case Op::recv: {
      const BufferId buffer = valid(task.chunk)
                                  ? map_.gradient(task.value, task.microbatch, task.chunk)
                                  : map_.value(task.value, task.microbatch);
      return task.op == Op::send ? read(buffer) : write(buffer);
    }
    case Op::all_to_all:
      return all_to_all(task);
    case Op::all_reduce:
      return change(map_.bucket(Kind::parameter_gradient, task.bucket));
    case Op::reduce_scatter:
      read(map_.full_gradient(task.bucket, task.microbatch));
      return change(map_.bucket(Kind::parameter_gradient, task.bucket));
    case Op::all_gather:
      if (plan_.buckets[index(task.bucket)].zero < 3) {
        return change(map_.bucket(Kind::parameter, task.bucket));
      }
      read(map_.bucket(Kind::parameter, task.bucket));
      return write(map_.gathered(task.bucket, task.microbatch));
    case Op::update:
      read(map_.single(Kind::grad_norm));
      for (const Kind kind : {Kind::parameter, Kind::parameter_gradient, Kind::optimizer}) {
        change(map_.bucket(kind, task.bucket));
      }
      return;
    default:
      return scalar(task);
  }
}

void ExpectedAccesses::scalar(const Task& task) {
  if (task.op == Op::input) {
    for (std::uint32_t b = 0; b < program_->buffers.size(); ++b) {
      if (program_->buffers[b].kind == Kind::input) {
        write(static_cast<BufferId>(b));
      }
    }
  } else if (task.op == Op::token_count && has_loss_) {
    for (const Chunk& chunk : plan_.chunks) {
      for (std::uint32_t m = 0; m < plan_.microbatches; ++m) {
        if (chunk.has_loss && &plan_.programs[chunk.program] == program_ &&
            runs_microbatch(chunk, m)) {
          read(map_.value(model_.labels, m));
        }
      }
    }
    write(map_.single(Kind::token_count));
  } else if (task.op == Op::loss_report && has_loss_) {
    change(map_.single(Kind::loss_sum));
    read(map_.single(Kind::token_count));
  } else if (task.op == Op::grad_norm) {
    for (const BucketId bucket : program_->buckets) {
      if (is_trained(bucket)) {
        read(map_.bucket(Kind::parameter_gradient, bucket));
      }
    }
    write(map_.single(Kind::grad_norm));
  }
}

bool ExpectedAccesses::made_by_experts(ValueId value) const {
  const std::vector<ChunkId>& makers = facts_.makers[index(value)];
  return !makers.empty() && plan_.chunks[index(makers.front())].experts;
}

// Experts read what others made as it was routed to them, and what experts made as those left it.
void ExpectedAccesses::inputs(const Task& task) {
  const Chunk& chunk = plan_.chunks[index(task.chunk)];
  for (const ValueId input : chunk.inputs) {
    const ChunkId reader = made_by_experts(input) ? none<ChunkId>() : task.chunk;
    read(chunk.experts ? map_.routed(input, task.microbatch, reader)
                       : map_.value(input, task.microbatch));
  }
}

void ExpectedAccesses::parameters(std::uint32_t id) {
  const std::vector<BucketId>& buckets = plan_.chunks[index(program_->tasks[id].chunk)].buckets;
  for (std::size_t j = 0; j < buckets.size(); ++j) {
    read(plan_.buckets[index(buckets[j])].zero == 3
             ? map_.gathered(buckets[j], chains_.parameter[chains_.first[id] + j])
             : map_.bucket(Kind::parameter, buckets[j]));
  }
}

void ExpectedAccesses::forward(std::uint32_t id) {
  const Task& task = program_->tasks[id];
  const Chunk& chunk = plan_.chunks[index(task.chunk)];
  inputs(task);
  parameters(id);
  outputs(task, writes_);
  if (plan_.kind == Plan::Kind::train && chunk.has_backward && !chunk.recompute) {
    write(map_.saved(task.chunk, task.microbatch));
  }
  if (chunk.has_loss) {
    change(map_.single(Kind::loss_sum));
  }
}

void ExpectedAccesses::recompute(std::uint32_t id) {
  const Task& task = program_->tasks[id];
  inputs(task);
  parameters(id);
  write(map_.saved(task.chunk, task.microbatch));
}

void ExpectedAccesses::outputs(const Task& task, std::vector<BufferId>& list) const {
  const Chunk& chunk = plan_.chunks[index(task.chunk)];
  for (const ValueId output : chunk.outputs) {
    if (output != model_.loss) {
      list.push_back(chunk.experts ? map_.routed(output, task.microbatch, none<ChunkId>())
                                   : map_.value(output, task.microbatch));
    }
  }
}

// Gradients of outputs, one a consumer that runs this micro-batch, and of inputs.
void ExpectedAccesses::gradients(const Task& task) {
  const Chunk& chunk = plan_.chunks[index(task.chunk)];
  const std::uint32_t m = task.microbatch;
  for (const ValueId output : chunk.outputs) {
    for (const ChunkId consumer : consumers_[index(output)]) {
      const Chunk& other = plan_.chunks[index(consumer)];
      if (facts_.computes_gradient(plan_, output, consumer) && runs_microbatch(other, m)) {
        read(chunk.experts && !other.experts ? map_.routed_gradient(output, m, consumer)
                                             : map_.gradient(output, m, consumer));
      }
    }
  }
  if (chunk.has_loss) {
    read(map_.single(Kind::token_count));
  }
  for (const ValueId input : chunk.inputs) {
    if (facts_.computes_gradient(plan_, input, task.chunk)) {
      write(chunk.experts && !made_by_experts(input) ? map_.routed_gradient(input, m, task.chunk)
                                                     : map_.gradient(input, m, task.chunk));
    }
  }
}

void ExpectedAccesses::backward(std::uint32_t id) {
  const Task& task = program_->tasks[id];
  const Chunk& chunk = plan_.chunks[index(task.chunk)];
  const BufferId saved = map_.saved(task.chunk, task.microbatch);
  inputs(task);
  if (task.op == Op::backward_weight) {
    read(saved);
  } else {
    parameters(id);
    if (!chunk.recompute) {
      outputs(task, reads_);
    }
    read(saved);
    gradients(task);
  }
  if (task.op == Op::backward_input) {
    write(saved);
    return;
  }
  for (std::size_t j = 0; j < chunk.buckets.size(); ++j) {
    const BucketId bucket = chunk.buckets[j];
    if (is_trained(bucket)) {
      change(plan_.buckets[index(bucket)].zero > 0
                 ? map_.full_gradient(bucket, chains_.gradient[chains_.first[id] + j])
                 : map_.bucket(Kind::parameter_gradient, bucket));
    }
  }
}

void ExpectedAccesses::all_to_all(const Task& task) {
  const auto reads = program_->reads_of(task);
  const Kind kind = reads.empty() ? Kind::activation : program_->buffer(reads[0]).kind;
  const Chunk& chunk = plan_.chunks[index(task.chunk)];
  const std::uint32_t m = task.microbatch;
  if (kind == Kind::activation || kind == Kind::routed_gradient) {
    for (const ValueId input : chunk.inputs) {
      if (made_by_experts(input)) {
        continue;
      }
      if (kind == Kind::activation) {
        read(map_.value(input, m));
        write(map_.routed(input, m, task.chunk));
      } else if (facts_.computes_gradient(plan_, input, task.chunk)) {
        read(map_.routed_gradient(input, m, task.chunk));
        write(map_.gradient(input, m, task.chunk));
      }
    }
    return;
  }
  for (const ValueId output : chunk.outputs) {
    bool leaves = false;
    for (const ChunkId consumer : consumers_[index(output)]) {
      const Chunk& other = plan_.chunks[index(consumer)];
      leaves = leaves || !other.experts;
      if (kind != Kind::routed && !other.experts && runs_microbatch(other, m) &&
          facts_.computes_gradient(plan_, output, consumer)) {
        read(map_.gradient(output, m, consumer));
        write(map_.routed_gradient(output, m, consumer));
      }
    }
    if (kind == Kind::routed && leaves) {
      read(map_.routed(output, m, none<ChunkId>()));
      write(map_.value(output, m));
    }
  }
}

}  // namespace piper
