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

std::int64_t Parameter::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    count *= size;
  }
  return count;
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

}  // namespace piper
