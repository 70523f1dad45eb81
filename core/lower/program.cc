#include "core/lower/program.h"

#include <algorithm>
#include <optional>

#include "core/lower/buffers.h"
#include "core/lower/experts.h"

namespace piper {
namespace {

class Builder {
 public:
  Builder(const Dag& dag, const ModelGraph& model, const Config& config, const Timeline& timeline,
          std::uint32_t program)
      : dag_(dag),
        model_(model),
        order_(timeline.order[program]),
        streams_(dag.programs[program].streams) {
    out_.ranks = dag.programs[program].ranks;
    out_.buckets = dag.programs[program].buckets;
    table_.emplace(dag, model, config, timeline, program, out_);
  }

  Program run() {
    std::size_t tasks = 0;
    for (const std::vector<NodeId>& stream : order_) {
      tasks += stream.size();
    }
    out_.tasks.reserve(tasks);
    for (std::size_t s = 0; s < order_.size(); ++s) {
      const auto begin = static_cast<std::uint32_t>(out_.tasks.size());
      for (const NodeId node : order_[s]) {
        add_task(node, StreamId{static_cast<std::uint32_t>(s)});
      }
      out_.streams.push_back({streams_[s].name,
                              streams_[s].kind,
                              {begin, static_cast<std::uint32_t>(order_[s].size())}});
    }
    return std::move(out_);
  }

 private:
  void read(BufferId buffer) { reads_.push_back(buffer); }
  void write(BufferId buffer) { writes_.push_back(buffer); }
  void read_and_write(BufferId buffer) {
    read(buffer);
    write(buffer);
  }

  // A computation's input: routed where it is experts that read what others made.
  BufferId input(const Node& node, std::uint32_t i) const {
    const Chunk& chunk = dag_.chunk(node.chunk);
    const ValueId v = chunk.inputs[i];
    if (chunk.experts) {
      const std::vector<ChunkId>& makers = dag_.makers[index(v)];
      const bool outside = std::any_of(makers.begin(), makers.end(),
                                       [&](ChunkId m) { return routes(dag_, m, node.chunk); });
      return outside ? table_->routed_input(node.chunk, i, node.microbatch)
                     : table_->routed_output(v, node.microbatch);
    }
    return table_->value(v, node.microbatch);
  }

  BufferId output(const Node& node, ValueId v) const {
    return dag_.chunk(node.chunk).experts ? table_->routed_output(v, node.microbatch)
                                          : table_->value(v, node.microbatch);
  }

  // The chains that a computation is in with the j-th bucket of its chunk.
  std::uint32_t parameter_chain(NodeId node, std::size_t j) const {
    return dag_.chains.parameter[dag_.chains.first[index(node)] + j];
  }
  std::uint32_t gradient_chain(NodeId node, std::size_t j) const {
    return dag_.chains.gradient[dag_.chains.first[index(node)] + j];
  }

  void read_parameters(NodeId id, const Chunk& chunk) {
    for (std::size_t j = 0; j < chunk.buckets.size(); ++j) {
      read(dag_.bucket(chunk.buckets[j]).zero == 3
               ? table_->gathered(chunk.buckets[j], parameter_chain(id, j))
               : table_->parameter(chunk.buckets[j]));
    }
  }

  void access_forward(NodeId id, const Node& node) {
    const Chunk& chunk = dag_.chunk(node.chunk);
    for (std::uint32_t i = 0; i < chunk.inputs.size(); ++i) {
      read(input(node, i));
    }
    read_parameters(id, chunk);
    for (const ValueId v : chunk.outputs) {
      write(output(node, v));
    }
    if (dag_.trains() && chunk.has_backward && !chunk.recompute) {
      write(table_->saved(node.chunk, node.microbatch));
    }
    if (chunk.has_loss) {
      read_and_write(table_->loss_sum());
    }
  }

  void access_recompute(NodeId id, const Node& node) {
    const Chunk& chunk = dag_.chunk(node.chunk);
    for (std::uint32_t i = 0; i < chunk.inputs.size(); ++i) {
      read(input(node, i));
    }
    read_parameters(id, chunk);
    write(table_->saved(node.chunk, node.microbatch));
  }

  // Gradients of outputs, a buffer for each user; gradients of inputs.
  void access_gradients(const Node& node) {
    const Chunk& chunk = dag_.chunk(node.chunk);
    for (const ValueId v : chunk.outputs) {
      for (const Use& user : dag_.uses[index(v)]) {
        if (computes_gradient(dag_, v, user.chunk) &&
            runs_microbatch(dag_.chunk(user.chunk), node.microbatch)) {
          read(chunk.experts && routes(dag_, node.chunk, user.chunk)
                   ? table_->routed_gradient(user.chunk, user.input, node.microbatch)
                   : table_->gradient(user.chunk, user.input, node.microbatch));
        }
      }
    }
    if (chunk.has_loss) {
      read(table_->token_count());
    }
    for (std::uint32_t i = 0; i < chunk.inputs.size(); ++i) {
      const ValueId v = chunk.inputs[i];
      if (computes_gradient(dag_, v, node.chunk)) {
        const bool routed =
            chunk.experts && routes(dag_, dag_.makers[index(v)].front(), node.chunk);
        write(routed ? table_->routed_gradient(node.chunk, i, node.microbatch)
                     : table_->gradient(node.chunk, i, node.microbatch));
      }
    }
  }

  static bool runs_microbatch(const Chunk& chunk, std::uint32_t m) {
    return chunk.microbatches.empty() ||
           std::binary_search(chunk.microbatches.begin(), chunk.microbatches.end(), m);
  }

  void access_backward(NodeId id, const Node& node) {
    const Chunk& chunk = dag_.chunk(node.chunk);
    const BufferId saved = table_->saved(node.chunk, node.microbatch);
    for (std::uint32_t i = 0; i < chunk.inputs.size(); ++i) {
      read(input(node, i));
    }
    if (node.op != Op::backward_weight) {
      read_parameters(id, chunk);
      if (!chunk.recompute) {
        for (const ValueId v : chunk.outputs) {
          read(output(node, v));
        }
      }
    }
    read(saved);
    if (node.op != Op::backward_weight) {
      access_gradients(node);
    }
    if (node.op == Op::backward_input) {
      write(saved);
      return;
    }
    for (std::size_t j = 0; j < chunk.buckets.size(); ++j) {
      const Bucket& bucket = dag_.bucket(chunk.buckets[j]);
      if (!bucket.frozen) {
        read_and_write(bucket.zero > 0
                           ? table_->full_gradient(chunk.buckets[j], gradient_chain(id, j))
                           : table_->parameter_gradient(chunk.buckets[j]));
      }
    }
  }

  void access_all_to_all(const Node& node) {
    const std::uint32_t m = node.microbatch;
    const ChunkId c = node.chunk;
    switch (node.route) {
      case Route::enter_forward:
        for (const ValueId v : routed_inputs(dag_, c)) {
          read(table_->value(v, m));
          write(table_->routed_input(c, table_->input_of(c, v), m));
        }
        return;
      case Route::leave_forward:
        for (const ValueId v : routed_outputs(dag_, c)) {
          read(table_->routed_output(v, m));
          write(table_->value(v, m));
        }
        return;
      case Route::enter_backward:
        for (const ValueId v : routed_outputs(dag_, c)) {
          for (const Use& user : dag_.uses[index(v)]) {
            if (routes(dag_, c, user.chunk) && computes_gradient(dag_, v, user.chunk) &&
                runs_microbatch(dag_.chunk(user.chunk), m)) {
              read(table_->gradient(user.chunk, user.input, m));
              write(table_->routed_gradient(user.chunk, user.input, m));
            }
          }
        }
        return;
      case Route::leave_backward:
        for (const ValueId v : routed_inputs(dag_, c)) {
          if (computes_gradient(dag_, v, c)) {
            read(table_->routed_gradient(c, table_->input_of(c, v), m));
            write(table_->gradient(c, table_->input_of(c, v), m));
          }
        }
        return;
      case Route::none:
        return;
    }
  }

  BufferId message(const Node& node) const {
    return valid(node.chunk) ? table_->gradient(node.chunk, node.value, node.microbatch)
                             : table_->value(node.value, node.microbatch);
  }

  void access(NodeId id, const Node& node) {
    switch (node.op) {
      case Op::forward:
        return access_forward(id, node);
      case Op::recompute:
        return access_recompute(id, node);
      case Op::backward:
      case Op::backward_input:
      case Op::backward_weight:
        return access_backward(id, node);
      case Op::send:
        return read(message(node));
      case Op::recv:
        return write(message(node));
      case Op::all_to_all:
        return access_all_to_all(node);
      case Op::all_reduce:
        return read_and_write(table_->parameter_gradient(node.bucket));
      case Op::reduce_scatter:
        read(table_->full_gradient(node.bucket, node.microbatch));
        return read_and_write(table_->parameter_gradient(node.bucket));
      case Op::all_gather:
        if (dag_.bucket(node.bucket).zero == 3) {
          read(table_->parameter(node.bucket));
          return write(table_->gathered(node.bucket, node.microbatch));
        }
        return read_and_write(table_->parameter(node.bucket));
      case Op::grad_norm:
        for (const BucketId bucket : out_.buckets) {
          if (!dag_.bucket(bucket).frozen) {
            read(table_->parameter_gradient(bucket));
          }
        }
        return write(table_->grad_norm());
      case Op::update:
        read(table_->grad_norm());
        read_and_write(table_->parameter(node.bucket));
        read_and_write(table_->parameter_gradient(node.bucket));
        return read_and_write(table_->optimizer(node.bucket));
      case Op::token_count:
        for_each_microbatch_with_loss(
            [&](std::uint32_t m) { read(table_->value(model_.labels, m)); }, node.program);
        return write(table_->token_count());
      case Op::loss_report:
        if (valid(table_->loss_sum())) {
          read_and_write(table_->loss_sum());
          read(table_->token_count());
        }
        return;
      case Op::input:
        for (const ValueId v : table_->inputs()) {
          for (const Buffer& buffer : out_.buffers) {
            if (buffer.kind == Buffer::Kind::input && buffer.value == v) {
              write(BufferId{static_cast<std::uint32_t>(&buffer - out_.buffers.data())});
            }
          }
        }
        return;
      case Op::statistic:
      case Op::state_update:
        break;
    }
    PIPER_CHECK(false, "an operation that lowering does not make");
  }

  template <typename F>
  void for_each_microbatch_with_loss(F&& f, std::uint32_t program) const {
    for (const Chunk& chunk : dag_.chunks) {
      if (chunk.has_loss && chunk.program == program) {
        const std::uint32_t count = runs(dag_, chunk);
        for (std::uint32_t i = 0; i < count; ++i) {
          f(microbatch_at(chunk, i));
        }
      }
    }
  }

  Range append(const std::vector<BufferId>& buffers) {
    const auto begin = static_cast<std::uint32_t>(out_.access.size());
    out_.access.insert(out_.access.end(), buffers.begin(), buffers.end());
    return {begin, static_cast<std::uint32_t>(buffers.size())};
  }

  Affine bytes_of(const Node& node) const {
    Affine total;
    switch (traits(node.op).moves) {
      case Moves::value:
        return model_.value(node.value).bytes();
      case Moves::routed:
        for (const BufferId buffer : reads_) {
          total = total + out_.buffer(buffer).bytes;
        }
        break;
      case Moves::shard:
        return {0, dag_.bucket(node.bucket).shard_gradient_bytes()};
      case Moves::gradients:
        return {0, dag_.bucket(node.bucket).gradient_bytes()};
      case Moves::parameters:
        return {0, dag_.bucket(node.bucket).bytes()};
      case Moves::scalar:
      case Moves::nothing:
        break;
    }
    return total;
  }

  void add_task(NodeId id, StreamId stream) {
    const Node& node = dag_.node(id);
    const auto task_id = TaskId{static_cast<std::uint32_t>(out_.tasks.size())};
    reads_.clear();
    writes_.clear();
    access(id, node);
    Task task;
    task.node = id;
    task.op = node.op;
    task.stream = stream;
    task.chunk = node.chunk;
    task.microbatch = node.microbatch;
    task.overlap = node.overlap;
    task.value = node.value;
    task.bucket = node.bucket;
    task.communicator = node.communicator;
    task.peer = is_point_to_point(node.op) ? node.peer : none<NodeId>();
    task.bytes = bytes_of(node);
    task.reads = append(reads_);
    task.writes = append(writes_);
    // The first writer allocates. On the compute stream that is the first in its order; what
    // several tasks write (a full gradient) is written on one stream only.
    for (const BufferId buffer : writes_) {
      Buffer& written = out_.buffers[index(buffer)];
      if (!lives_as_long_as_the_job(written.kind) && !valid(written.alloc)) {
        written.alloc = task_id;
      }
    }
    out_.tasks.push_back(task);
  }

  const Dag& dag_;
  const ModelGraph& model_;
  const std::vector<std::vector<NodeId>>& order_;
  const std::vector<LogicalStream>& streams_;
  Program out_;
  std::optional<BufferTable> table_;
  std::vector<BufferId> reads_, writes_;
};

}  // namespace

Program build_program(const Dag& dag, const ModelGraph& model, const Config& config,
                      const Timeline& timeline, std::uint32_t program) {
  return Builder(dag, model, config, timeline, program).run();
}

Plan plan_tables(const Dag& dag, const ModelGraph& model) {
  Plan plan;
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
  for (const Node& node : dag.nodes) {
    plan.origin_of_node.push_back(node.origin);
  }
  return plan;
}

}  // namespace piper
