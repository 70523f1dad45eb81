// The checks of verify(ModelGraph), with a say in where an error points.
#pragma once

#include <cstdint>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"

namespace piper {

// Tells the place of an item: its model line, or its line in the text that is parsed.
class ItemPlaces {
 public:
  enum class Kind : std::uint8_t { graph, tag_name, dimension, parameter, value, region };

  virtual ~ItemPlaces() = default;
  virtual Location where(Kind kind, std::uint32_t id) const = 0;
};

Status verify(const ModelGraph& model, const ItemPlaces& places);

}  // namespace piper
