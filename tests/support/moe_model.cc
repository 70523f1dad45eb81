#include "tests/support/moe_model.h"

#include <string>
#include <utility>
#include <vector>

namespace piper::test {
namespace {

constexpr std::int64_t kFloat = 4;

class Maker {
 public:
  explicit Maker(const MoeShape& shape) : s_(shape) {
    model_.name = "mixture of experts";
    for (const char* tag : {"embed", "layer", "attention", "EP", "combine", "head"}) {
      model_.intern_tag(tag);
    }
  }

  ModelGraph run() {
    const ValueId tokens = value("tokens", DType::int64, {s_.seq}, false);
    model_.labels = value("labels", DType::int64, {s_.seq}, false);
    const auto embedding = parameters({{"embed_tokens", {s_.vocab, s_.dim}}});
    ValueId hidden = value("", DType::float32, {s_.seq, s_.dim});
    region({{tag("embed"), 0}}, {tokens}, {hidden}, embedding, 0, s_.seq * 8);
    for (std::int64_t l = 0; l < s_.layers; ++l) {
      hidden = layer(static_cast<std::uint32_t>(l), hidden);
    }
    const auto head = parameters({{"norm", {s_.dim}}, {"lm_head", {s_.vocab, s_.dim}}});
    model_.loss = value("", DType::float32, {}, true, /*rows=*/false);
    region({{tag("head"), 0}}, {hidden, model_.labels}, {model_.loss}, head,
           2 * s_.seq * s_.dim * s_.vocab, s_.seq * (s_.dim + s_.vocab) * kFloat);
    return std::move(model_);
  }

 private:
  using Named = std::pair<std::string, std::vector<std::int64_t>>;

  TagId tag(const char* name) const { return *model_.find_tag(name); }

  // `dims` after the rows. A computed value is made by the next region.
  ValueId value(std::string name, DType dtype, const std::vector<std::int64_t>& dims,
                bool computed = true, bool rows = true) {
    std::vector<Affine> shape;
    if (rows) {
      shape.push_back({1, 0});
    }
    for (const std::int64_t dim : dims) {
      shape.push_back({0, dim});
    }
    const RegionId next{static_cast<std::uint32_t>(model_.regions.size())};
    model_.values.push_back(
        {std::move(name), dtype, std::move(shape), computed ? next : none<RegionId>()});
    return ValueId{static_cast<std::uint32_t>(model_.values.size() - 1)};
  }

  std::vector<ParameterId> parameters(const std::vector<Named>& named) {
    std::vector<ParameterId> ids;
    for (const auto& [name, shape] : named) {
      Parameter parameter;
      parameter.name = name + ".weight";
      parameter.shape = shape;
      model_.parameters.push_back(std::move(parameter));
      ids.push_back(ParameterId{static_cast<std::uint32_t>(model_.parameters.size() - 1)});
    }
    return ids;
  }

  void region(std::vector<Tag> tags, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
              std::vector<ParameterId> parameters, std::int64_t flops, std::int64_t saved) {
    Region made;
    made.tags = std::move(tags);
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    made.parameters = std::move(parameters);
    made.flops = {flops, 0};
    made.saved_bytes = {saved, 0};
    made.where = {"tests/support/moe_model.cc", 0, 0};
    model_.regions.push_back(std::move(made));
  }

  ValueId layer(std::uint32_t l, ValueId hidden) {
    const std::string name = "layers." + std::to_string(l) + '.';
    const std::int64_t queries = s_.heads * s_.head_dim, keys = s_.kv_heads * s_.head_dim;
    const std::int64_t sent = s_.seq * s_.experts_per_token;  // copies of tokens
    const auto attention = parameters({{name + "input_norm", {s_.dim}},
                                       {name + "q_proj", {queries, s_.dim}},
                                       {name + "k_proj", {keys, s_.dim}},
                                       {name + "v_proj", {keys, s_.dim}},
                                       {name + "o_proj", {s_.dim, queries}},
                                       {name + "post_norm", {s_.dim}},
                                       {name + "router", {s_.experts, s_.dim}}});
    const ValueId residual = value("", DType::float32, {s_.seq, s_.dim});
    const ValueId dispatched = value("", DType::float32, {sent, s_.dim});
    const ValueId chosen = value("", DType::int64, {sent});
    const ValueId weights = value("", DType::float32, {sent});
    region({{tag("layer"), l}, {tag("attention"), l}}, {hidden},
           {residual, dispatched, chosen, weights}, attention,
           2 * s_.seq * (s_.dim * (2 * queries + 2 * keys + s_.experts) + 2 * s_.seq * queries),
           kFloat * (s_.seq * (3 * s_.dim + 2 * queries + 2 * keys) + s_.heads * s_.seq * s_.seq));

    std::vector<Named> matrices;
    for (std::int64_t e = 0; e < s_.experts; ++e) {
      const std::string expert = name + "experts." + std::to_string(e) + '.';
      matrices.push_back({expert + "gate_proj", {s_.ffn, s_.dim}});
      matrices.push_back({expert + "up_proj", {s_.ffn, s_.dim}});
      matrices.push_back({expert + "down_proj", {s_.dim, s_.ffn}});
    }
    const auto experts = parameters(matrices);
    const ValueId computed = value("", DType::float32, {sent, s_.dim});
    region({{tag("layer"), l}, {tag("EP"), l}}, {dispatched, chosen}, {computed}, experts,
           2 * sent * 3 * s_.dim * s_.ffn, kFloat * sent * (s_.dim + 3 * s_.ffn));

    const ValueId out = value("", DType::float32, {s_.seq, s_.dim});
    region({{tag("layer"), l}, {tag("combine"), l}}, {residual, computed, weights}, {out}, {},
           2 * sent * s_.dim, kFloat * sent * (s_.dim + 1));
    return out;
  }

  const MoeShape& s_;
  ModelGraph model_;
};

}  // namespace

ModelGraph moe_model(const MoeShape& shape) {
  return Maker(shape).run();
}

}  // namespace piper::test
