// Writing down what one rank of a pipeline computes, in order, as the papers say it: "so many
// forwards, then one forward and one backward in turn".
#pragma once

#include <piper/filter.h>
#include <piper/order.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace pipeline {

// A pipeline's size. A micro-batch passes through ranks * stages_per_rank stages.
struct Shape {
  std::uint32_t ranks = 1;
  std::uint32_t stages_per_rank = 1;
  std::uint32_t microbatches = 1;

  std::uint32_t stages() const { return ranks * stages_per_rank; }
};

// Where stages live. Stages s of R ranks:
//   loop      s on rank s mod R
//   v         s on rank s, and back again: 2R - 1 - s from s = R on
//   both_ways R stages, each twice: on rank s for the first half of the micro-batches, on rank
//             R - 1 - s for the second
enum class Layout { loop, v, both_ways };

// A stage on the rank that a row is for, and the micro-batch that its next pass takes: every pass
// takes them in ascending order.
struct Lane {
  std::uint32_t stage = 0;
  std::uint32_t next_forward = 0;
  std::uint32_t next_backward = 0;  // B or I

  static Lane starting_at(std::uint32_t stage, std::uint32_t microbatch) {
    return {stage, microbatch, microbatch};
  }
};

// The actions of one rank.
class Row {
 public:
  void forward(Lane& lane);                // F
  void backward(Lane& lane);               // B, the whole backward pass
  void backward_input(Lane& lane);         // I, the gradients of inputs: owes a W
  void backward_weight();                  // W, the gradients of weights: the oldest that is owed
  void backward_weight(const Lane& lane);  // the oldest that is owed for this stage
  void forward_beside_backward(Lane& forward, Lane& backward);  // F and B, overlapped

  void add(std::uint32_t stage, std::uint32_t microbatch, piper_pass pass,
           std::uint32_t overlap = 0) {
    actions_.push_back({stage, microbatch, static_cast<std::uint32_t>(pass), overlap});
  }
  // How many Ws are owed, and whether this stage owes any.
  std::uint32_t owed() const { return static_cast<std::uint32_t>(owed_.size()); }
  bool owes(const Lane& lane) const;
  // Leaves out micro-batches from `count` on.
  void keep_microbatches(std::uint32_t count);

  const std::vector<piper_action>& actions() const { return actions_; }

 private:
  std::vector<piper_action> actions_;
  std::deque<piper_action> owed_;  // Ws whose I is done, in the order of the Is
  std::uint32_t overlaps_ = 0;
};

template <typename Actions>
void repeat(std::uint32_t times, Actions&& actions) {
  for (; times > 0; --times) {
    actions();
  }
}

// The rows of all ranks, each made by `row(shape, rank)`.
template <typename MakeRow>
std::vector<Row> each_rank(const Shape& shape, MakeRow&& row) {
  std::vector<Row> rows;
  for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
    rows.push_back(row(shape, rank));
  }
  return rows;
}

}  // namespace pipeline
