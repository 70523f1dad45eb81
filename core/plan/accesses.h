// What every operation reads and writes: the contract between planner, verifier and runtime. The
// contents of buffers are ordered by the plan alone, so a task touches what stands here, in this
// order, and nothing else.
//
// Lowering (core/lower/program.cc) says it once more on its own, and the verifier compares. What an
// edge of the DAG carries, what the runtime asks of a plan and the table in docs/plan.md come from
// here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/model_facts.h"
#include "core/plan/plan.h"

namespace piper {

enum class Access : std::uint8_t {
  reads,    // what others left in it
  keeps,    // reads what the chunk's forward has read or made, and was kept for it beside `saved`
  writes,   // fills it
  adds,     // accumulates into it, among others that do, in any order
  changes,  // reads all of it and leaves it changed
  renews,   // leaves it as the next step needs it, when all of this one is known
};

// The buffers of a task, by its chunk, bucket or value. access_table() has the words.
enum class What : std::uint8_t {
  // Of its chunk and micro-batch.
  inputs,
  outputs,
  outputs_kept,
  saved,
  saved_for_backward,
  parameters,
  parameter_gradients,
  input_gradients,
  output_gradients,
  // Of its value, or of the values that it routes.
  message,
  route_from,
  route_to,
  // Of its bucket.
  parameter,
  gathered,
  parameter_gradient,
  full_gradient,
  optimizer,
  // Of its program.
  batch,
  labels,
  gradients,
  loss_sum,
  token_count,
  grad_norm,
};

struct AccessRule {
  Op op;
  Access access;
  What what;
};

// clang-format off
inline constexpr AccessRule kAccesses[] = {
    {Op::input,           Access::writes,  What::batch},

    {Op::token_count,     Access::reads,   What::labels},
    {Op::token_count,     Access::writes,  What::token_count},

    {Op::forward,         Access::reads,   What::inputs},
    {Op::forward,         Access::reads,   What::parameters},
    {Op::forward,         Access::writes,  What::outputs},
    {Op::forward,         Access::writes,  What::saved_for_backward},
    {Op::forward,         Access::adds,    What::loss_sum},

    {Op::recompute,       Access::reads,   What::inputs},
    {Op::recompute,       Access::reads,   What::parameters},
    {Op::recompute,       Access::writes,  What::saved},

    {Op::backward,        Access::keeps,   What::inputs},
    {Op::backward,        Access::reads,   What::parameters},
    {Op::backward,        Access::keeps,   What::outputs_kept},
    {Op::backward,        Access::reads,   What::saved},
    {Op::backward,        Access::reads,   What::output_gradients},
    {Op::backward,        Access::reads,   What::token_count},
    {Op::backward,        Access::writes,  What::input_gradients},
    {Op::backward,        Access::adds,    What::parameter_gradients},

    {Op::backward_input,  Access::keeps,   What::inputs},
    {Op::backward_input,  Access::reads,   What::parameters},
    {Op::backward_input,  Access::keeps,   What::outputs_kept},
    {Op::backward_input,  Access::reads,   What::saved},
    {Op::backward_input,  Access::reads,   What::output_gradients},
    {Op::backward_input,  Access::reads,   What::token_count},
    {Op::backward_input,  Access::writes,  What::input_gradients},
    {Op::backward_input,  Access::writes,  What::saved},

    {Op::backward_weight, Access::keeps,   What::inputs},
    {Op::backward_weight, Access::reads,   What::saved},
    {Op::backward_weight, Access::adds,    What::parameter_gradients},

    {Op::send,            Access::reads,   What::message},
    {Op::recv,            Access::writes,  What::message},

    {Op::all_to_all,      Access::reads,   What::route_from},
    {Op::all_to_all,      Access::writes,  What::route_to},

    {Op::all_gather,      Access::reads,   What::parameter},
    {Op::all_gather,      Access::writes,  What::gathered},

    {Op::reduce_scatter,  Access::reads,   What::full_gradient},
    {Op::reduce_scatter,  Access::changes, What::parameter_gradient},

    {Op::all_reduce,      Access::changes, What::parameter_gradient},

    {Op::grad_norm,       Access::reads,   What::gradients},
    {Op::grad_norm,       Access::writes,  What::grad_norm},

    {Op::update,          Access::reads,   What::grad_norm},
    {Op::update,          Access::renews,  What::parameter},
    {Op::update,          Access::renews,  What::parameter_gradient},
    {Op::update,          Access::renews,  What::optimizer},

    {Op::loss_report,     Access::changes, What::loss_sum},
    {Op::loss_report,     Access::reads,   What::token_count},
};
// clang-format on

std::span<const AccessRule> accesses_of(Op op);
bool touches(Op op, What what);

// What a buffer holds, whichever program it is of.
struct Content {
  BufferKind kind = BufferKind::activation;
  ValueId value = none<ValueId>();
  std::uint32_t microbatch = 0;
  ChunkId chunk = none<ChunkId>();
  BucketId bucket = none<BucketId>();
  std::uint32_t chain = 0;
  bool operator==(const Content&) const = default;
};

// A task of a plan or a node of a DAG, as far as its accesses go.
struct Accessor {
  Op op = Op::forward;
  std::uint32_t program = 0;
  std::uint32_t microbatch = 0;
  ChunkId chunk = none<ChunkId>();
  ValueId value = none<ValueId>();
  BucketId bucket = none<BucketId>();
  std::uint32_t chain = 0;
  bool into_experts = false, backward = false;  // all_to_all
  // Of a pass, by bucket of its chunk: the chains in which it reads the gathered parameter and adds
  // to the full gradient; empty: nothing is sharded.
  std::span<const std::uint32_t> parameter_chains, gradient_chains;
};

// Finds them from the model and the tables of a plan or DAG alone.
class Accesses {
 public:
  struct Scope {
    const ModelGraph& model;
    std::span<const Chunk> chunks;
    std::span<const Bucket> buckets;
    std::uint32_t microbatches = 1;
    bool trains = true;
  };
  explicit Accesses(Scope scope);

  // Appends what the task touches, in the order of the table, with how.
  struct Entry {
    Access access;
    Content content;
  };
  void find(const Accessor& task, std::vector<Entry>& out) const;

 private:
  class Found;  // takes contents
  void add(What what, const Accessor& task, Found& out) const;
  void add_parameters(const Accessor& task, Found& out) const;
  void add_parameter_gradients(const Accessor& task, Found& out) const;
  void add_input_gradients(const Accessor& task, Found& out) const;
  void add_output_gradients(const Accessor& task, Found& out) const;
  void add_route(const Accessor& task, bool from, Found& out) const;
  void add_batch(const Accessor& task, Found& out) const;
  bool made_by_experts(ValueId value) const;
  bool has_loss(const Accessor& task) const;
  bool computes_gradient(ValueId value, ChunkId chunk) const;
  Content value(ValueId value, std::uint32_t microbatch) const;
  const Chunk& chunk(ChunkId id) const { return scope_.chunks[index(id)]; }
  const Bucket& bucket(BucketId id) const { return scope_.buckets[index(id)]; }

  Scope scope_;
  ModelFacts facts_;
  std::vector<std::vector<ChunkId>> consumers_;  // by ValueId, ascending
};

// The table above in words, as Markdown.
std::string access_table();

}  // namespace piper
