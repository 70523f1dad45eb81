#include "core/lower/edge_values.h"

#include <algorithm>

namespace piper {
namespace {

using Kind = Carried::Kind;
using List = std::vector<Carried>;

constexpr std::uint32_t kAny = 0xffffffff;  // every micro-batch

class Accesses {
 public:
  Accesses(const Dag& dag, const ModelGraph& model) : dag_(dag), model_(model) {}

  List writes(const Node& node) {
    list_.clear();
    switch (node.op) {
      case Op::input:
        for (std::uint32_t v = 0; v < model_.values.size(); ++v) {
          if (model_.values[v].is_input()) {
            add(Kind::value, v, none<ChunkId>(), kAny);
          }
        }
        break;
      case Op::forward:
        values(node, dag_.chunk(node.chunk).outputs);
        if (!dag_.chunk(node.chunk).recompute) {
          add(Kind::saved, 0, node.chunk, node.microbatch);
        }
        add(Kind::sum, 0);
        break;
      case Op::recompute:
        add(Kind::saved, 0, node.chunk, node.microbatch);
        break;
      case Op::backward:
      case Op::backward_input:
      case Op::backward_weight:
        backward_writes(node);
        break;
      case Op::recv:
        message(node);
        break;
      case Op::all_to_all:
        routed(node);
        break;
      case Op::all_reduce:
      case Op::reduce_scatter:
        add(Kind::gradients, index(node.bucket));
        break;
      case Op::all_gather:
      case Op::update:
        add(Kind::parameters, index(node.bucket));
        break;
      case Op::token_count:
        add(Kind::count, 0);
        break;
      case Op::grad_norm:
        add(Kind::norm, 0);
        break;
      default:
        break;
    }
    return list_;
  }

  List reads(const Node& node) {
    list_.clear();
    switch (node.op) {
      case Op::forward:
      case Op::recompute:
        values(node, dag_.chunk(node.chunk).inputs);
        parameters(node);
        break;
      case Op::backward:
      case Op::backward_input:
      case Op::backward_weight:
        backward_reads(node);
        break;
      case Op::send:
        message(node);
        break;
      case Op::all_to_all:
        routed(node);
        break;
      case Op::all_reduce:
      case Op::reduce_scatter:
        add(Kind::gradients, index(node.bucket));
        break;
      case Op::all_gather:
        add(Kind::parameters, index(node.bucket));
        break;
      case Op::token_count:
        add(Kind::value, index(model_.labels), none<ChunkId>(), kAny);
        break;
      case Op::grad_norm:
        for (std::uint32_t b = 0; b < dag_.buckets.size(); ++b) {
          add(Kind::gradients, b);
        }
        break;
      case Op::update:
        add(Kind::norm, 0);
        break;
      case Op::loss_report:
        add(Kind::sum, 0);
        add(Kind::count, 0);
        break;
      default:
        break;
    }
    return list_;
  }

 private:
  void add(Kind kind, std::uint32_t id, ChunkId chunk = none<ChunkId>(),
           std::uint32_t microbatch = kAny) {
    list_.push_back({kind, id, chunk, microbatch});
  }

  void values(const Node& node, const std::vector<ValueId>& ids) {
    for (const ValueId value : ids) {
      add(Kind::value, index(value), none<ChunkId>(), node.microbatch);
    }
  }

  void parameters(const Node& node) {
    for (const BucketId bucket : dag_.chunk(node.chunk).buckets) {
      add(Kind::parameters, index(bucket));
    }
  }

  void message(const Node& node) {
    add(valid(node.chunk) ? Kind::gradient : Kind::value, index(node.value), node.chunk,
        node.microbatch);
  }

  void input_gradients(ChunkId chunk, std::uint32_t microbatch) {
    for (const ValueId value : dag_.chunk(chunk).inputs) {
      if (computes_gradient(dag_, value, chunk)) {
        add(Kind::gradient, index(value), chunk, microbatch);
      }
    }
  }

  // One for each chunk that uses the output.
  void output_gradients(ChunkId chunk, std::uint32_t microbatch) {
    for (const ValueId value : dag_.chunk(chunk).outputs) {
      for (const Use& use : dag_.uses[index(value)]) {
        add(Kind::gradient, index(value), use.chunk, microbatch);
      }
    }
  }

  void backward_writes(const Node& node) {
    if (node.op != Op::backward_weight) {
      input_gradients(node.chunk, node.microbatch);
    }
    if (node.op == Op::backward_input) {
      add(Kind::saved, 0, node.chunk, node.microbatch);
      return;
    }
    for (const BucketId bucket : dag_.chunk(node.chunk).buckets) {
      add(Kind::gradients, index(bucket));
    }
  }

  void backward_reads(const Node& node) {
    add(Kind::saved, 0, node.chunk, node.microbatch);
    if (node.op == Op::backward_weight) {
      return;
    }
    output_gradients(node.chunk, node.microbatch);
    parameters(node);
    if (dag_.chunk(node.chunk).has_loss) {
      add(Kind::count, 0);
    }
  }

  // An all-to-all reads on one side what it writes on the other.
  void routed(const Node& node) {
    const Chunk& chunk = dag_.chunk(node.chunk);
    switch (node.route) {
      case Route::enter_forward:
        return values(node, chunk.inputs);
      case Route::leave_forward:
        return values(node, chunk.outputs);
      case Route::enter_backward:
        return output_gradients(node.chunk, node.microbatch);
      case Route::leave_backward:
        return input_gradients(node.chunk, node.microbatch);
      case Route::none:
        return;
    }
  }

  const Dag& dag_;
  const ModelGraph& model_;
  List list_;
};

bool same(const Carried& a, const Carried& b) {
  return a.kind == b.kind && a.id == b.id && a.chunk == b.chunk &&
         (a.microbatch == b.microbatch || a.microbatch == kAny || b.microbatch == kAny);
}

}  // namespace

std::string to_string(const Carried& carried) {
  switch (carried.kind) {
    case Kind::value:
      return "%" + std::to_string(carried.id);
    case Kind::gradient:
      return "grad %" + std::to_string(carried.id);
    case Kind::saved:
      return "saved";
    case Kind::parameters:
      return "b" + std::to_string(carried.id);
    case Kind::gradients:
      return "grad b" + std::to_string(carried.id);
    case Kind::count:
      return "count";
    case Kind::norm:
      return "norm";
    case Kind::sum:
      return "sum";
  }
  return "";
}

std::vector<Carried> carried(const Dag& dag, const ModelGraph& model, const Edge& edge) {
  Accesses accesses(dag, model);
  const List reads = accesses.reads(dag.node(edge.to));
  List both = accesses.writes(dag.node(edge.from));
  std::erase_if(both, [&](const Carried& written) {
    return std::none_of(reads.begin(), reads.end(),
                        [&](const Carried& read) { return same(written, read); });
  });
  return both;
}

}  // namespace piper
