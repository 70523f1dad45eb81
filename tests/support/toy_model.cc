#include "tests/support/toy_model.h"

#include <algorithm>
#include <string>

namespace piper::test {
namespace {

constexpr std::int64_t kSeq = 4, kDim = 8, kVocab = 16;

}  // namespace

ModelGraph toy_model(const ToyShape& shape) {
  ModelGraph model;
  model.name = "toy";
  const TagId layer = model.intern_tag("layer");
  const auto value = [&](std::string name, DType dtype, std::vector<Affine> dims,
                         RegionId producer) {
    model.values.push_back({std::move(name), dtype, std::move(dims), producer});
    return ValueId{static_cast<std::uint32_t>(model.values.size() - 1)};
  };
  const auto parameter = [&](std::string name, std::vector<std::int64_t> dims) {
    Parameter p;
    p.name = std::move(name);
    p.shape = std::move(dims);
    model.parameters.push_back(std::move(p));
    return ParameterId{static_cast<std::uint32_t>(model.parameters.size() - 1)};
  };
  const auto region = [&](std::vector<Tag> tags, std::vector<ParameterId> parameters,
                          std::vector<ValueId> inputs, ValueId output) {
    Region r;
    r.tags = std::move(tags);
    r.parameters = std::move(parameters);
    r.inputs = std::move(inputs);
    r.outputs = {output};
    r.flops = {2 * kSeq * kDim * kDim, 0};
    r.saved_bytes = {2 * kSeq * kDim * 4, 0};
    r.where = {"toy.cc", static_cast<std::uint32_t>(10 + model.regions.size()), 0};
    model.regions.push_back(std::move(r));
  };
  const auto next = [&] { return RegionId{static_cast<std::uint32_t>(model.regions.size())}; };
  const std::vector<Affine> hidden{{1, 0}, {0, kSeq}, {0, kDim}};

  const ValueId tokens = value("tokens", DType::int64, {{1, 0}, {0, kSeq}}, none<RegionId>());
  model.labels = value("labels", DType::int64, {{1, 0}, {0, kSeq}}, none<RegionId>());
  const ParameterId embed = parameter("embed.weight", {kVocab, kDim});
  model.parameters[index(embed)].frozen = shape.frozen_embedding;
  ValueId h = value("", DType::float32, hidden, next());
  region({}, {embed}, {tokens}, h);
  for (std::uint32_t l = 0; l < shape.layers; ++l) {
    const ParameterId w = parameter("layers." + std::to_string(l) + ".weight", {kDim, kDim});
    const ValueId out = value("", DType::float32, hidden, next());
    region({{layer, l}}, {w}, {h}, out);
    h = out;
  }
  const ParameterId head = shape.tied ? embed : parameter("head.weight", {kVocab, kDim});
  model.loss = value("", DType::float32, {}, next());
  region({}, {head}, {h, model.labels}, model.loss);
  return model;
}

Config toy_config(std::uint32_t pp, std::uint32_t dp, std::uint32_t microbatches) {
  Config config;
  config.file = "job.toml";
  config.mesh.axes = {{"pp", pp}, {"dp", dp}};
  config.training.microbatches = microbatches;
  config.training.global_batch_size = static_cast<std::int64_t>(dp) * microbatches + dp;  // uneven
  config.strategies.push_back({"toy", "toy", {}, {"job.toml", 7, 1}});
  return config;
}

Proposal toy_pipeline(const Config& config, const ModelGraph& model, bool gpipe) {
  const std::uint32_t stages = config.mesh.size("pp"), dp = config.mesh.size("dp");
  const auto regions = static_cast<std::uint32_t>(model.regions.size());
  const auto m = static_cast<std::uint32_t>(config.training.microbatches);
  Proposal proposal;
  proposal.from = {"toy", {"job.toml", 7, 1}};
  proposal.claims = {{Claim::Kind::axis, "pp", proposal.from},
                     {Claim::Kind::order, "", proposal.from}};
  const auto say = [&](auto what) {
    proposal.directives.push_back({std::move(what), proposal.from});
  };
  for (std::uint32_t s = 0; s < stages; ++s) {
    const std::uint32_t first = s * regions / stages, last = (s + 1) * regions / stages - 1;
    say(TagDirective{{{{"REGION", Condition::Kind::in_range, {first, last}}}, {}}, "PP", s});
    Ranks ranks;
    for (std::uint32_t d = 0; d < dp; ++d) {
      ranks.ranks.push_back(s * dp + d);
    }
    say(PlaceDirective{{{{"PP", Condition::Kind::equals, {s}}}, {}}, ranks, "compute"});
    OrderChainDirective chain{ranks, {}};
    const std::uint32_t warm = gpipe ? m : std::min(m, stages - s);
    for (std::uint32_t f = 0; f < warm; ++f) {
      chain.actions.push_back({s, f, Pass::forward});
    }
    for (std::uint32_t b = 0; b < m; ++b) {
      chain.actions.push_back({s, b, Pass::backward});
      if (warm + b < m) {
        chain.actions.push_back({s, warm + b, Pass::forward});
      }
    }
    say(std::move(chain));
  }
  return proposal;
}

}  // namespace piper::test
