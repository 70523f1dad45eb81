// What directives say of regions: a value for each, which is T{} until somebody says another.
#pragma once

#include <any>
#include <cstddef>
#include <map>
#include <typeindex>
#include <utility>
#include <vector>

#include "core/base/ids.h"

namespace piper {

// Sizes itself: it ends with the last region of which anything was said.
template <typename T>
class Column {
 public:
  Column() = default;
  explicit Column(T nothing) : nothing_(std::move(nothing)) {}

  const T& operator[](std::size_t region) const {
    return region < said_.size() ? said_[region] : nothing_;
  }
  T& edit(std::size_t region) {
    if (region >= said_.size()) {
      said_.resize(region + 1, nothing_);
    }
    return said_[region];
  }
  auto begin() const { return said_.begin(); }
  auto end() const { return said_.end(); }

 private:
  T nothing_{};
  std::vector<T> said_;
};

// Columns by what they hold. So a directive declares its annotation in its own file.
class Columns {
 public:
  template <typename T>
  const T& of(RegionId region) const {
    static const T nothing{};
    const auto found = columns_.find(typeid(T));
    return found == columns_.end() ? nothing
                                   : (*std::any_cast<Column<T>>(&found->second))[index(region)];
  }
  template <typename T>
  T& edit(RegionId region) {
    std::any& column = columns_[typeid(T)];
    if (!column.has_value()) {
      column = Column<T>();
    }
    return std::any_cast<Column<T>>(&column)->edit(index(region));
  }

 private:
  std::map<std::type_index, std::any> columns_;  // looked up, never walked through
};

}  // namespace piper
