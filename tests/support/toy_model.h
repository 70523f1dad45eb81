// A small captured model made by hand, and a pipeline strategy made by hand: for tests of the
// planner without a runtime and without plugins.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"

namespace piper::test {

struct ToyShape {
  std::uint32_t layers = 4;
  bool tied = false;  // the head uses the embedding's weight
  bool frozen_embedding = false;
};

// embed, `layers` regions with tag layer=0.., a head with the loss; inputs tokens and labels.
ModelGraph toy_model(const ToyShape& shape = {});

// A job for it: pp x dp ranks, rank = stage * dp + replica.
Config toy_config(std::uint32_t pp, std::uint32_t dp, std::uint32_t microbatches);

// Stages of equally many layers on the pp axis in 1F1B order, or, with `gpipe`, all forwards first.
Proposal toy_pipeline(const Config& config, const ModelGraph& model, bool gpipe = false);

}  // namespace piper::test
