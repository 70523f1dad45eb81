#include "core/ir/model_graph.h"

#include <algorithm>

namespace piper {

Affine Value::bytes() const {
  Affine product{0, size_of(dtype)};
  for (const Affine& size : shape) {
    PIPER_CHECK(product.per_row == 0 || size.per_row == 0,
                "two dimensions of a value depend on the rows");
    product = {product.per_row * size.fixed + product.fixed * size.per_row,
               product.fixed * size.fixed};
  }
  return product;
}

std::int64_t Most::at(std::int64_t rows) const {
  std::int64_t most = 0;
  for (const Affine& size : of) {
    most = std::max(most, size.at(rows));
  }
  return most;
}

void Most::add(Affine size) {
  const auto covers = [](Affine a, Affine b) {
    return a.per_row >= b.per_row && a.fixed >= b.fixed;
  };
  if (std::any_of(of.begin(), of.end(), [&](Affine other) { return covers(other, size); })) {
    return;
  }
  std::erase_if(of, [&](Affine other) { return covers(size, other); });
  of.insert(std::upper_bound(of.begin(), of.end(), size,
                             [](Affine a, Affine b) { return a.per_row > b.per_row; }),
            size);
}

std::int64_t Parameter::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    count *= size;
  }
  return count;
}

std::int64_t Region::workspace_bytes(std::int64_t rows) const {
  std::int64_t bytes = 0;
  for (const SizeFrom& size : workspace) {
    bytes = size.rows <= rows ? size.bytes.at(rows) : bytes;
  }
  return bytes;
}

std::optional<std::uint32_t> Region::tag(TagId name) const {
  for (const Tag& tag : tags) {
    if (tag.name == name) {
      return tag.index;
    }
  }
  return std::nullopt;
}

std::optional<TagId> ModelGraph::find_tag(std::string_view tag_name) const {
  const auto found = std::find(tag_names.begin(), tag_names.end(), tag_name);
  if (found == tag_names.end()) {
    return std::nullopt;
  }
  return static_cast<TagId>(found - tag_names.begin());
}

TagId ModelGraph::intern_tag(std::string_view tag_name) {
  if (const auto known = find_tag(tag_name)) {
    return *known;
  }
  tag_names.emplace_back(tag_name);
  return static_cast<TagId>(tag_names.size() - 1);
}

std::vector<bool> values_with_gradient(const ModelGraph& model) {
  std::vector<bool> differentiable(model.values.size()), leads_to_loss(model.values.size());
  for (const Region& region : model.regions) {
    bool any = std::any_of(region.parameters.begin(), region.parameters.end(), [&](ParameterId p) {
      return !model.parameter(p).frozen && is_floating(model.parameter(p).dtype);
    });
    for (const ValueId input : region.inputs) {
      any = any || differentiable[index(input)];
    }
    for (const ValueId output : region.outputs) {
      differentiable[index(output)] = any && is_floating(model.value(output).dtype);
    }
  }
  if (valid(model.loss)) {
    leads_to_loss[index(model.loss)] = true;
  }
  for (auto region = model.regions.rbegin(); region != model.regions.rend(); ++region) {
    const bool any = std::any_of(region->outputs.begin(), region->outputs.end(),
                                 [&](ValueId output) { return leads_to_loss[index(output)]; });
    for (const ValueId input : region->inputs) {
      leads_to_loss[index(input)] = leads_to_loss[index(input)] || any;
    }
  }
  for (std::size_t v = 0; v < differentiable.size(); ++v) {
    differentiable[v] = differentiable[v] && leads_to_loss[v];
  }
  return differentiable;
}

}  // namespace piper
