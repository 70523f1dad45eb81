// Ranks of mesh coordinates: the one place that says which rank sits where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/directives/filter.h"

namespace piper {

// Ranks count row by row over the axes, the last one innermost. `ep` takes no ranks of its own: it
// divides dp, and consecutive coordinates of dp form an expert group. So dp stands for (edp, ep),
// edp = dp / ep outermost, and both names may be used like axes.
class MeshRanks {
 public:
  explicit MeshRanks(const MeshConfig& mesh);

  std::uint32_t world() const { return world_; }
  // Codes: mesh.unknown_axis (lists the known ones), mesh.coordinate.
  Expected<Ranks> at(const std::vector<std::pair<std::string, std::uint64_t>>& coordinates) const;
  // Whether a group holds, with each of its ranks, all those that differ from it only on `axis`.
  bool extends(const Ranks& group, const std::string& axis) const;
  // The groups within which only the coordinates on `axes` differ, by their lowest rank.
  Expected<std::vector<Ranks>> along(const std::vector<std::string>& axes) const;

 private:
  struct Axis {
    std::string name;
    std::uint32_t size = 1;
    std::uint32_t stride = 1;
    std::uint32_t of(std::uint32_t rank) const { return rank / stride % size; }
  };
  Expected<Axis> find(const std::string& name) const;

  std::vector<Axis> axes_;     // that together number the ranks: dp split in edp and ep
  std::vector<Axis> aliases_;  // dp itself, where it is split
  std::uint32_t world_ = 1;
};

}  // namespace piper
