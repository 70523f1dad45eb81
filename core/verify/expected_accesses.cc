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
  map_.build(report, program);
}

void ExpectedAccesses::find(const Task& task) {
  reads_.clear();
  writes_.clear();
  switch (task.op) {
    case Op::forward:
      return forward(task, plan_.chunks[index(task.chunk)]);
    case Op::backward:
    case Op::backward_input:
    case Op::backward_weight:
      return backward(task, plan_.chunks[index(task.chunk)]);
    case Op::send:
    case Op::recv: {
      const BufferId buffer = valid(task.chunk)
                                  ? map_.gradient(task.value, task.microbatch, task.chunk)
                                  : map_.value(task.value, task.microbatch);
      return task.op == Op::send ? read(buffer) : write(buffer);
    }
    case Op::all_reduce:
      return change(map_.bucket(Kind::parameter_gradient, task.bucket));
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
    for (std::uint32_t m = 0; m < plan_.microbatches; ++m) {
      read(map_.value(model_.labels, m));
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

void ExpectedAccesses::forward(const Task& task, const Chunk& chunk) {
  for (const ValueId input : chunk.inputs) {
    read(map_.value(input, task.microbatch));
  }
  for (const BucketId bucket : chunk.buckets) {
    read(map_.bucket(Kind::parameter, bucket));
  }
  outputs(task, chunk, writes_);
  if (plan_.kind == Plan::Kind::train && chunk.has_backward) {
    write(map_.saved(task.chunk, task.microbatch));
  }
  if (chunk.has_loss) {
    change(map_.single(Kind::loss_sum));
  }
}

void ExpectedAccesses::outputs(const Task& task, const Chunk& chunk,
                               std::vector<BufferId>& list) const {
  for (const ValueId output : chunk.outputs) {
    if (output != model_.loss) {
      list.push_back(map_.value(output, task.microbatch));
    }
  }
}

void ExpectedAccesses::backward(const Task& task, const Chunk& chunk) {
  const std::uint32_t m = task.microbatch;
  for (const ValueId input : chunk.inputs) {
    read(map_.value(input, m));
  }
  if (task.op == Op::backward_weight) {
    read(map_.saved(task.chunk, m));
  } else {
    for (const BucketId bucket : chunk.buckets) {
      read(map_.bucket(Kind::parameter, bucket));
    }
    outputs(task, chunk, reads_);
    read(map_.saved(task.chunk, m));
    for (const ValueId output : chunk.outputs) {
      for (const ChunkId consumer : consumers_[index(output)]) {
        if (facts_.computes_gradient(plan_, output, consumer)) {
          read(map_.gradient(output, m, consumer));
        }
      }
    }
    if (chunk.has_loss) {
      read(map_.single(Kind::token_count));
    }
    for (const ValueId input : chunk.inputs) {
      if (facts_.computes_gradient(plan_, input, task.chunk)) {
        write(map_.gradient(input, m, task.chunk));
      }
    }
  }
  if (task.op == Op::backward_input) {
    write(map_.saved(task.chunk, m));
    return;
  }
  for (const BucketId bucket : chunk.buckets) {
    if (is_trained(bucket)) {
      change(map_.bucket(Kind::parameter_gradient, bucket));
    }
  }
}

}  // namespace piper
