#include "core/plan/model_facts.h"

#include <algorithm>

namespace piper {

ModelFacts find_facts(std::span<const Chunk> chunks, const ModelGraph& model) {
  ModelFacts facts;
  std::vector<bool> trained(model.values.size(), false), leads_to_loss(model.values.size(), false);
  for (const Region& region : model.regions) {
    bool any = false;
    for (const ParameterId parameter : region.parameters) {
      any = any || !model.parameter(parameter).frozen;
    }
    for (const ValueId input : region.inputs) {
      any = any || trained[index(input)];
    }
    for (const ValueId output : region.outputs) {
      trained[index(output)] = any && is_floating(model.value(output).dtype);
    }
  }
  leads_to_loss[index(model.loss)] = true;
  for (auto region = model.regions.rbegin(); region != model.regions.rend(); ++region) {
    bool any = false;
    for (const ValueId output : region->outputs) {
      any = any || leads_to_loss[index(output)];
    }
    for (const ValueId input : region->inputs) {
      leads_to_loss[index(input)] = leads_to_loss[index(input)] || any;
    }
  }
  facts.makers.resize(model.values.size());
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    for (const RegionId region : chunks[c].regions) {
      for (const ValueId output : model.region(region).outputs) {
        facts.makers[index(output)].push_back(static_cast<ChunkId>(c));
      }
    }
  }
  for (std::size_t v = 0; v < model.values.size(); ++v) {
    facts.wants_gradient.push_back(trained[v] && leads_to_loss[v]);
  }
  return facts;
}

bool runs_microbatch(const Chunk& chunk, std::uint32_t microbatch) {
  return chunk.microbatches.empty() ||
         std::binary_search(chunk.microbatches.begin(), chunk.microbatches.end(), microbatch);
}

}  // namespace piper
