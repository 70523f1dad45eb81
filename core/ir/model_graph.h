// The captured model: regions, the values that flow between them, and parameters. No tensors, no
// LibTorch.
//
// A model on one device, forward only: what `capture` finds by running the model once on the meta
// device, and what strategies see. Text form: model_graph_text.cc. Everything is in order of
// creation, so ids never depend on hashing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/base/label.h"

namespace piper {

// A size that is affine in the number of rows (sequences) of a micro-batch.
struct Affine {
  std::int64_t per_row = 0;
  std::int64_t fixed = 0;

  constexpr std::int64_t at(std::int64_t rows) const { return per_row * rows + fixed; }
  constexpr Affine operator+(const Affine& other) const {
    return {per_row + other.per_row, fixed + other.fixed};
  }
  bool operator==(const Affine&) const = default;
};

// The largest of several sizes: which one it is can depend on the rows.
struct Most {
  std::vector<Affine> of;  // none is everywhere below another; per_row falls, fixed rises

  std::int64_t at(std::int64_t rows) const;  // 0 where there are none
  void add(Affine size);
  bool operator==(const Most&) const = default;
};

// The most bytes that a pass over a region holds at once. Not counted are parameters, the region's
// inputs, and in the backward passes its results and their gradients: whoever runs several regions
// knows how long those live.
struct RegionPeaks {
  Most evaluate;        // a forward that keeps nothing; its results among it
  Most forward;         // one that keeps the autograd graph; its results among it
  Most backward;        // what the graph saved among it, as in the two halves
  Most backward_input;  // none: no input has a gradient
  Most backward_weight;

  bool operator==(const RegionPeaks&) const = default;
};

// A size that grows with the rows by other rules the more there are: from `rows` on it is `bytes`.
struct SizeFrom {
  std::int64_t rows = 1;
  Affine bytes;

  bool operator==(const SizeFrom&) const = default;
};

// A size that is only known while a step runs, as the number of tokens that a router sends to one
// expert, but that never exceeds a maximum.
struct RunTimeDimension {
  std::string name;  // unique; a word other than "r"
  Affine maximum;

  bool operator==(const RunTimeDimension&) const = default;
};

// A tensor that is computed by one region, or delivered by the data loader. At most one dimension
// depends on the rows.
struct Value {
  std::string name;  // of inputs ("tokens"); "" for computed values
  DType dtype = DType::float32;
  std::vector<Affine> shape;             // run-time dimensions at their maximum
  RegionId producer = none<RegionId>();  // none: an input of the model
  // By dimension of `shape`: which run-time dimension it is, or none. Empty: all are known.
  std::vector<DimensionId> run_time = {};

  // Where a dimension is known at run time only: at its maximum, which is what capacity must cover.
  Affine bytes() const;
  bool is_input() const { return !valid(producer); }
  bool needs_gradient() const { return !is_input() && is_floating(dtype); }
  bool operator==(const Value&) const = default;
};

struct Parameter {
  std::string name;  // unique; Hugging Face's where the model has one
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  bool frozen = false;  // [model] freeze: no gradient, no optimizer state, never changed
  Location where;

  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const Parameter&) const = default;
};

struct Tag {
  TagId name;
  std::uint32_t index;

  bool operator==(const Tag&) const = default;
};

// The smallest piece of a model that can run alone: it has no state but its parameters and reads
// its sizes from its inputs.
struct Region {
  std::vector<Tag> tags;                // outermost first; a name at most once
  std::vector<ParameterId> parameters;  // in order of first use
  std::vector<ValueId> inputs;          // the order is the argument order
  std::vector<ValueId> outputs;         // the order is the result order
  Affine flops;                         // of the forward pass
  // What autograd keeps from the forward to the backward pass, parameters apart.
  Affine saved_bytes;
  Affine transient_bytes;  // largest extra live memory while the forward runs
  Location where;          // the model's source line
  // What is kept between BI and BW, parameters apart: what operations on parameters saved, and the
  // gradients that arrive at them.
  Affine pending_bytes = {};
  // Inputs and results that are among the saved and the pending bytes, and results whose gradients
  // are among the pending bytes as they arrive; ascending.
  std::vector<ValueId> saved_values = {}, pending_values = {}, pending_gradients = {};
  std::optional<RegionPeaks> peaks = {};            // none: estimated from transient_bytes
  std::vector<ParameterId> reread_parameters = {};  // that BW reads; ascending
  // The most that kernels take inside one operator of any pass, beside its results; not among the
  // peaks. By ascending rows, the first from 1; none: nothing.
  std::vector<SizeFrom> workspace = {};

  std::optional<std::uint32_t> tag(TagId name) const;
  std::int64_t workspace_bytes(std::int64_t rows) const;
  bool operator==(const Region&) const = default;
};

struct ModelGraph {
  std::string name;
  std::vector<std::string> tag_names;        // by TagId
  std::vector<RunTimeDimension> dimensions;  // by DimensionId; capture makes none
  std::vector<Parameter> parameters;         // by ParameterId
  std::vector<Value> values;                 // by ValueId
  std::vector<Region> regions;               // by RegionId; producers before consumers
  ValueId loss = none<ValueId>();    // a scalar: the sum of token losses over the counted labels
  ValueId labels = none<ValueId>();  // the input whose entries but kIgnoredLabel are counted

  const Region& region(RegionId id) const { return regions[index(id)]; }
  const Value& value(ValueId id) const { return values[index(id)]; }
  const Parameter& parameter(ParameterId id) const { return parameters[index(id)]; }
  std::optional<TagId> find_tag(std::string_view name) const;
  TagId intern_tag(std::string_view name);
  bool operator==(const ModelGraph&) const = default;
};

// By ValueId: whether it has something to differentiate, and leads to the loss.
std::vector<bool> values_with_gradient(const ModelGraph& model);

// Checks what every later phase relies on: ids in range, one producer a value, producers first,
// unique names, a loss.
Status verify(const ModelGraph& model);

// One line an item; parse(print(m)) == m, print(parse(t)) == t. `where` in errors is
// `source`:line:column.
std::string print(const ModelGraph& model);
Expected<ModelGraph> parse_model_graph(std::string_view text, const std::string& source);

}  // namespace piper
