#include "core/verify/rules.h"

namespace piper {

bool ModelFacts::computes_gradient(const Plan& plan, ValueId value, ChunkId chunk) const {
  return plan.kind == Plan::Kind::train && valid(producer[index(value)]) &&
         wants_gradient[index(value)] && plan.chunks[index(chunk)].has_backward;
}

ModelFacts find_facts(const Plan& plan, const ModelGraph& model) {
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
  facts.producer.assign(model.values.size(), none<ChunkId>());
  for (std::uint32_t c = 0; c < plan.chunks.size(); ++c) {
    for (const RegionId region : plan.chunks[c].regions) {
      for (const ValueId output : model.region(region).outputs) {
        facts.producer[index(output)] = static_cast<ChunkId>(c);
      }
    }
  }
  for (std::size_t v = 0; v < model.values.size(); ++v) {
    facts.wants_gradient.push_back(trained[v] && leads_to_loss[v]);
  }
  return facts;
}

}  // namespace piper
