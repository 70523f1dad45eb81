// From rows to a strategy: what pipeline plugins do besides ordering. Every one has the options
// `schedule`, `stages_per_rank`, `boundaries` and `axis`.
#pragma once

#include <piper/strategy.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "row.h"

namespace pipeline {

// A pipeline schedule: where its stages live, how many a rank may have, and each rank's order.
struct Schedule {
  std::string_view name;
  Layout layout = Layout::loop;
  std::uint32_t least_stages_per_rank = 1;
  std::uint32_t most_stages_per_rank = 1;
  std::vector<Row> (*rows)(const Shape& shape) = nullptr;
};
constexpr std::uint32_t kAnyNumber = 0xffffffff;

// The axis that option `axis` names.
piper::sdk::Axis axis_of(const piper::sdk::Job& job);

// The one that option `schedule` names; the manifest has the same names.
const Schedule& chosen(const piper::sdk::Job& job, const Schedule* first, const Schedule* last);

// Ranks, stages a rank (option `stages_per_rank`; without it 2 where the schedule may have several,
// else 1) and micro-batches. Fails with <plugin>.stages_per_rank.
Shape shape_of(const piper::sdk::Job& job, const Schedule& schedule);

// The rank of each stage. `both_ways`: for the first half of the micro-batches; the second half
// runs it on the opposite rank.
struct Homes {
  std::vector<std::uint32_t> rank;
  bool both_ways = false;
};
Homes homes_of(const Shape& shape, Layout layout);

// Claims the axis and the order; has the host cut the model into stages along its layers (balanced
// by cost, or at `boundaries`); tags them PP = 0, 1, ...; splits the backwards that a row splits;
// places and orders them. Fails with <plugin>.stages and <plugin>.boundaries.
void propose(piper::sdk::Job& job, const Homes& homes, const std::vector<Row>& rows);

// "expected M to be ..., got 5; the nearest are 4 and 6", at [training] microbatches.
[[noreturn]] void refuse_microbatches(const piper::sdk::Job& job, const std::string& schedule,
                                      const std::string& rule,
                                      const std::vector<std::uint32_t>& nearest);

}  // namespace pipeline
