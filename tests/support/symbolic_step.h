// A training step on one device with expressions in place of numbers: what every plan must come to.
// Slow and obvious; nothing of core/lower or core/verify is used.
//
// An expression is a number: equal numbers, equal expressions. A value of the model is an
// expression of the rows that it is of and of the versions of the parameters that went into it; a
// gradient is a sum of such, kept as the list of its terms, so that one that is missing, doubled or
// of other rows is seen.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/ir/model_graph.h"

namespace piper::test {

using Symbol = std::uint32_t;
using Sum = std::vector<Symbol>;  // terms, ascending; one twice is there twice

// `to` += `more`.
void add(Sum& to, const Sum& more);

class Symbols {
 public:
  Symbol make(std::vector<std::int64_t> key);

 private:
  std::map<std::vector<std::int64_t>, Symbol> known_;
};

// Rows of the global batch.
struct Block {
  std::int64_t begin = 0, count = 0;
  auto operator<=>(const Block&) const = default;
};
// Part `part` of `parts` contiguous ones, the remainder to the earlier.
Block cut(Block whole, std::int64_t parts, std::int64_t part);

// What autograd does to one region.
class RegionRules {
 public:
  explicit RegionRules(const ModelGraph& model);

  Symbol input(ValueId value, Block rows, std::int64_t step);
  // Of all labels of a step.
  Symbol count(const Sum& labels);
  // `arguments` are its inputs; `versions` those of its parameters, each once, ascending.
  Symbol forward(RegionId region, const std::vector<Sum>& arguments,
                 const std::vector<std::int64_t>& versions);
  Symbol output(Symbol forward, std::size_t i);
  // `gradients`: of its outputs. Nothing flows back where all are empty, or nothing is trained.
  bool has_backward(RegionId region, const std::vector<Sum>& gradients) const;
  Symbol backward(RegionId region, Symbol forward, const std::vector<std::int64_t>& versions,
                  const std::vector<Sum>& gradients);
  Symbol gradient_of_input(Symbol backward, std::size_t i);
  Symbol gradient_of_parameter(Symbol backward, std::size_t i);
  Symbol gradient_of_loss(Symbol count);
  bool wants_gradient(ValueId value) const { return wants_gradient_[index(value)]; }

 private:
  const ModelGraph& model_;
  Symbols symbols_;
  std::vector<bool> wants_gradient_;  // by ValueId: floating, and depends on what is trained
};

// The step on one device, block of rows by block of rows.
class OneDeviceStep {
 public:
  // `trains`: step k uses version k of the parameters; else always version 0.
  OneDeviceStep(const ModelGraph& model, RegionRules& rules, std::vector<Block> blocks, bool trains)
      : model_(model), rules_(rules), blocks_(std::move(blocks)), trains_(trains) {}

  const std::vector<Block>& blocks() const { return blocks_; }
  Symbol value(ValueId value, Block rows, std::int64_t step);
  Symbol count(std::int64_t step);
  Sum losses(std::int64_t step);
  // All blocks' contributions to a parameter.
  const Sum& gradient(ParameterId parameter, std::int64_t step);

 private:
  void backward(Block rows, std::int64_t step, std::vector<Sum>& of_parameters);
  std::vector<std::int64_t> versions(const Region& region, std::int64_t step) const;

  const ModelGraph& model_;
  RegionRules& rules_;
  std::vector<Block> blocks_;
  bool trains_;
  std::map<std::tuple<ValueId, Block, std::int64_t>, Symbol> values_;
  std::map<std::int64_t, std::vector<Sum>> gradients_;  // by step, by ParameterId
};

}  // namespace piper::test
