#include "core/lower/assemble.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace piper {
namespace {

// Bytes that a bucket's optimizer keeps: moments, and master weights where parameters are narrower
// than gradients.
std::int64_t optimizer_bytes(const Bucket& bucket, const OptimizerConfig& optimizer) {
  const DType wide = gradient_dtype(bucket.dtype);
  std::int64_t copies = wide != bucket.dtype ? 1 : 0;
  if (optimizer.name == OptimizerName::adamw) {
    copies += 2;
  } else if (optimizer.momentum > 0) {
    copies += 1;
  }
  return copies * bucket.elements * size_of(wide);
}

// The buffers and tasks of one program.
class ProgramBuilder {
 public:
  ProgramBuilder(const Dag& dag, const ModelGraph& model, const Config& config,
                 std::uint32_t program)
      : dag_(dag), model_(model), config_(config), id_(program) {
    out_.ranks = dag.programs[program].ranks;
    out_.buckets = dag.programs[program].buckets;
  }

  Program build(const std::vector<std::vector<NodeId>>& order,
                const std::vector<NodeId>& own_nodes) {
    make_buffers(own_nodes);
    for (std::size_t s = 0; s < order.size(); ++s) {
      const LogicalStream& logical = dag_.programs[id_].streams[s];
      const auto begin = static_cast<std::uint32_t>(out_.tasks.size());
      for (const NodeId node : order[s]) {
        add_task(node, StreamId{static_cast<std::uint32_t>(s)});
      }
      out_.streams.push_back({logical.name,
                              logical.kind,
                              {begin, static_cast<std::uint32_t>(out_.tasks.size()) - begin}});
    }
    return std::move(out_);
  }

 private:
  using Block =
      std::map<std::pair<ValueId, ChunkId>, std::uint32_t>;  // first buffer of one a micro-batch

  BufferId add_persistent(Buffer::Kind kind, BucketId bucket, std::int64_t bytes) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.bucket = bucket;
    buffer.bytes = {0, bytes};
    out_.buffers.push_back(buffer);
    return BufferId{static_cast<std::uint32_t>(out_.buffers.size() - 1)};
  }

  void add_block(Block& block, Buffer::Kind kind, ValueId value, ChunkId chunk, Affine bytes) {
    if (!block.try_emplace({value, chunk}, static_cast<std::uint32_t>(out_.buffers.size()))
             .second) {
      return;
    }
    Buffer buffer;
    buffer.kind = kind;
    buffer.value = value;
    buffer.chunk = chunk;
    buffer.bytes = bytes;
    buffer.slot = Buffer::kNoSlot;
    for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
      buffer.microbatch = m;
      out_.buffers.push_back(buffer);
    }
  }

  void add_value(ValueId value) {
    const bool input = model_.value(value).is_input();
    add_block(values_, input ? Buffer::Kind::input : Buffer::Kind::activation, value,
              none<ChunkId>(), model_.value(value).bytes());
  }

  void add_gradient(ValueId value, ChunkId consumer) {
    add_block(gradients_, Buffer::Kind::gradient, value, consumer, model_.value(value).bytes());
  }

  void make_buffers(const std::vector<NodeId>& own_nodes) {
    const bool trains = dag_.trains();
    for (const BucketId id : out_.buckets) {
      const Bucket& bucket = dag_.bucket(id);
      parameter_[id] = add_persistent(Buffer::Kind::parameter, id, bucket.bytes());
      if (trains && !bucket.frozen) {
        gradient_[id] =
            add_persistent(Buffer::Kind::parameter_gradient, id, bucket.gradient_bytes());
        optimizer_[id] =
            add_persistent(Buffer::Kind::optimizer, id, optimizer_bytes(bucket, config_.optimizer));
      }
    }
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      const Chunk& chunk = dag_.chunks[c];
      if (chunk.program != id_) {
        continue;
      }
      if (chunk.has_loss) {
        loss_sum_ = add_persistent(Buffer::Kind::loss_sum, none<BucketId>(), 8);
        token_count_ = add_persistent(Buffer::Kind::token_count, none<BucketId>(), 8);
        add_value(model_.labels);
      }
      for (const ValueId value : chunk.inputs) {
        add_value(value);
        if (computes_gradient(dag_, value, ChunkId{c})) {
          add_gradient(value, ChunkId{c});
        }
      }
      for (const ValueId value : chunk.outputs) {
        add_value(value);
      }
      if (trains && chunk.has_backward) {
        add_block(saved_, Buffer::Kind::saved, none<ValueId>(), ChunkId{c}, chunk.saved_bytes);
      }
    }
    for (const NodeId id : own_nodes) {
      const Node& node = dag_.node(id);
      if (node.op == Op::recv && valid(node.chunk)) {
        add_gradient(node.value, node.chunk);
      }
    }
    if (trains) {
      grad_norm_ = add_persistent(Buffer::Kind::grad_norm, none<BucketId>(), 16);
    }
  }

  BufferId at(const Block& block, ValueId value, ChunkId chunk, std::uint32_t microbatch) const {
    const auto found = block.find({value, chunk});
    PIPER_CHECK(found != block.end(), "a task uses a value that its program does not have");
    return BufferId{found->second + microbatch};
  }
  BufferId value_buffer(ValueId value, std::uint32_t m) const {
    return at(values_, value, none<ChunkId>(), m);
  }

  void read(BufferId buffer) { reads_.push_back(buffer); }
  void write(BufferId buffer) { writes_.push_back(buffer); }
  void update_in_place(BufferId buffer) {
    read(buffer);
    write(buffer);
  }

  void access_forward(const Node& node) {
    const Chunk& chunk = dag_.chunk(node.chunk);
    for (const ValueId value : chunk.inputs) {
      read(value_buffer(value, node.microbatch));
    }
    for (const BucketId bucket : chunk.buckets) {
      read(parameter_.at(bucket));
    }
    for (const ValueId value : chunk.outputs) {
      write(value_buffer(value, node.microbatch));
    }
    if (dag_.trains() && chunk.has_backward) {
      write(at(saved_, none<ValueId>(), node.chunk, node.microbatch));
    }
    if (chunk.has_loss) {
      update_in_place(loss_sum_);
    }
  }

  void access_backward(const Node& node) {
    const Chunk& chunk = dag_.chunk(node.chunk);
    const BufferId saved = at(saved_, none<ValueId>(), node.chunk, node.microbatch);
    for (const ValueId value : chunk.inputs) {
      read(value_buffer(value, node.microbatch));
    }
    if (node.op == Op::backward_weight) {
      read(saved);
    } else {
      for (const BucketId bucket : chunk.buckets) {
        read(parameter_.at(bucket));
      }
      for (const ValueId value : chunk.outputs) {
        read(value_buffer(value, node.microbatch));
      }
      read(saved);
      for (const ValueId value : chunk.outputs) {
        for (const ChunkId consumer : dag_.consumers[index(value)]) {
          if (computes_gradient(dag_, value, consumer)) {
            read(at(gradients_, value, consumer, node.microbatch));
          }
        }
      }
      if (chunk.has_loss) {
        read(token_count_);
      }
      for (const ValueId value : chunk.inputs) {
        if (computes_gradient(dag_, value, node.chunk)) {
          write(at(gradients_, value, node.chunk, node.microbatch));
        }
      }
    }
    if (node.op == Op::backward_input) {
      write(saved);
      return;
    }
    for (const BucketId bucket : chunk.buckets) {
      if (!dag_.bucket(bucket).frozen) {
        update_in_place(gradient_.at(bucket));
      }
    }
  }

  BufferId message_buffer(const Node& node) const {
    return valid(node.chunk) ? at(gradients_, node.value, node.chunk, node.microbatch)
                             : value_buffer(node.value, node.microbatch);
  }

  void access(const Node& node) {
    switch (node.op) {
      case Op::forward:
        return access_forward(node);
      case Op::backward:
      case Op::backward_input:
      case Op::backward_weight:
        return access_backward(node);
      case Op::send:
        return read(message_buffer(node));
      case Op::recv:
        return write(message_buffer(node));
      case Op::all_reduce:
        return update_in_place(gradient_.at(node.bucket));
      case Op::grad_norm:
        for (const auto& [bucket, buffer] : gradient_) {
          read(buffer);
        }
        return write(grad_norm_);
      case Op::update:
        read(grad_norm_);
        update_in_place(parameter_.at(node.bucket));
        update_in_place(gradient_.at(node.bucket));
        return update_in_place(optimizer_.at(node.bucket));
      case Op::token_count:
        for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
          read(value_buffer(model_.labels, m));
        }
        return write(token_count_);
      case Op::loss_report:
        if (valid(loss_sum_)) {
          update_in_place(loss_sum_);
          read(token_count_);
        }
        return;
      case Op::input:
        for (const auto& [key, first] : values_) {
          if (model_.value(key.first).is_input()) {
            for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
              write(BufferId{first + m});
            }
          }
        }
        return;
      default:
        PIPER_CHECK(false, "an operation that lowering does not make");
    }
  }

  Range append(const std::vector<BufferId>& buffers) {
    const auto begin = static_cast<std::uint32_t>(out_.access.size());
    out_.access.insert(out_.access.end(), buffers.begin(), buffers.end());
    return {begin, static_cast<std::uint32_t>(buffers.size())};
  }

  void add_task(NodeId id, StreamId stream) {
    const Node& node = dag_.node(id);
    const auto task_id = TaskId{static_cast<std::uint32_t>(out_.tasks.size())};
    Task task;
    task.node = id;
    task.op = node.op;
    task.stream = stream;
    task.chunk = node.chunk;
    task.microbatch = node.microbatch;
    task.value = node.value;
    task.bucket = node.bucket;
    task.communicator = node.communicator;
    if (is_point_to_point(node.op)) {
      task.peer = node.peer;
      task.bytes = model_.value(node.value).bytes();
    } else if (node.op == Op::all_reduce) {
      task.bytes = {0, dag_.bucket(node.bucket).gradient_bytes()};
    }
    reads_.clear();
    writes_.clear();
    access(node);
    task.reads = append(reads_);
    task.writes = append(writes_);
    // The first writer allocates what does not live as long as the job.
    const bool allocates = node.op == Op::forward || node.op == Op::backward ||
                           node.op == Op::backward_input || node.op == Op::recv ||
                           node.op == Op::input;
    if (allocates) {
      for (const BufferId buffer : writes_) {
        Buffer& written = out_.buffers[index(buffer)];
        const bool persists = written.kind == Buffer::Kind::parameter_gradient ||
                              written.kind == Buffer::Kind::loss_sum;
        const bool again = node.op == Op::backward_input && written.kind == Buffer::Kind::saved;
        if (!persists && !again) {
          written.alloc = task_id;
        }
      }
    }
    out_.tasks.push_back(task);
  }

  const Dag& dag_;
  const ModelGraph& model_;
  const Config& config_;
  std::uint32_t id_;
  Program out_;
  Block values_, gradients_, saved_;
  std::map<BucketId, BufferId> parameter_, gradient_, optimizer_;
  BufferId loss_sum_ = none<BufferId>(), token_count_ = none<BufferId>(),
           grad_norm_ = none<BufferId>();
  std::vector<BufferId> reads_, writes_;
};

TaskTimes times_of(const Dag& dag, const Adjacency& before, const Program& program,
                   std::uint32_t id, const std::vector<TaskId>& task_of, const Timeline& timeline) {
  TaskTimes times;
  times.first.push_back(0);
  for (const Task& task : program.tasks) {
    const std::uint32_t n = index(task.node);
    times.start.push_back(timeline.start[n]);
    times.end.push_back(timeline.end[n]);
    for (std::uint32_t e = before.first[n]; e < before.first[n + 1]; ++e) {
      if (dag.node(before.other[e]).program == id) {
        times.before.push_back(task_of[index(before.other[e])]);
      }
    }
    times.first.push_back(static_cast<std::uint32_t>(times.before.size()));
  }
  return times;
}

}  // namespace

Assembled assemble(const Dag& dag, const ModelGraph& model, const Config& config,
                   const Timeline& timeline) {
  Assembled out;
  Plan& plan = out.plan;
  plan.kind = dag.kind;
  plan.world = dag.world;
  plan.microbatches = dag.microbatches;
  plan.global_rows = dag.global_rows;
  plan.chunks = dag.chunks;
  plan.buckets = dag.buckets;
  plan.communicators = dag.communicators;
  plan.origins = dag.origins;
  plan.tag_names = model.tag_names;
  plan.origin_of_node.reserve(dag.nodes.size());
  std::vector<std::vector<NodeId>> own(dag.programs.size());
  for (std::uint32_t n = 0; n < dag.nodes.size(); ++n) {
    plan.origin_of_node.push_back(dag.nodes[n].origin);
    own[dag.nodes[n].program].push_back(NodeId{n});
  }
  const Adjacency before = predecessors(dag);
  std::vector<TaskId> task_of(dag.nodes.size(), none<TaskId>());
  for (std::uint32_t p = 0; p < dag.programs.size(); ++p) {
    plan.programs.push_back(ProgramBuilder(dag, model, config, p).build(timeline.order[p], own[p]));
    for (std::uint32_t t = 0; t < plan.programs[p].tasks.size(); ++t) {
      task_of[index(plan.programs[p].tasks[t].node)] = TaskId{t};
    }
    out.times.push_back(times_of(dag, before, plan.programs[p], p, task_of, timeline));
  }
  return out;
}

}  // namespace piper
