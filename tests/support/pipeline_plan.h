// Valid plans of small pipelines, made without core's lowering: what the verifier's tests start
// from and then break.
//
// Stage s has one layer of toy_model, the first also the embedding, the last also the head and the
// loss. Every data edge between streams has a wait of its own; nothing is left out because
// something else implies it.
#pragma once

#include <cstdint>

#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper::test {

struct PipelineShape {
  std::uint32_t stages = 2;
  std::uint32_t replicas = 1;  // ranks a stage
  std::uint32_t microbatches = 2;
  bool tied = false;            // embedding and head share a weight
  bool split_backward = false;  // BI and BW
  bool folded = false;          // V placement: two stages a program, `stages` of them is even
  bool evaluates = false;
  bool frozen_embedding = false;
  // loss_report runs on the stream of grad_norm, after it; on its communicator, or on one of its
  // own.
  enum class Report : std::uint8_t { compute, scalar, scalar_apart } report = Report::compute;
  std::uint32_t spare_places = 1;  // more than a channel needs at least
};

struct PipelineCase {
  ModelGraph model;
  Plan plan;
};

// Without `folded`: 1F1B. With it: all forwards, then all backwards.
PipelineCase pipeline(const PipelineShape& shape = {});

}  // namespace piper::test
