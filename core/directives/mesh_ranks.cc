#include "core/directives/mesh_ranks.h"

#include <algorithm>
#include <map>

namespace piper {

MeshRanks::MeshRanks(const MeshConfig& mesh) {
  const std::uint32_t ep = mesh.size("ep");
  for (auto axis = mesh.axes.rbegin(); axis != mesh.axes.rend(); ++axis) {  // innermost first
    const auto& [name, size] = *axis;
    if (name == "ep") {
      continue;
    }
    if (name == "dp" && ep > 1 && size % ep == 0) {
      axes_.push_back({"ep", ep, world_});
      axes_.push_back({"edp", size / ep, world_ * ep});
      aliases_.push_back({name, size, world_});
    } else {
      axes_.push_back({name, size, world_});
    }
    world_ *= size;
  }
}

Expected<MeshRanks::Axis> MeshRanks::find(const std::string& name) const {
  std::vector<std::string> known;
  for (const std::vector<Axis>* list : {&aliases_, &axes_}) {
    for (const Axis& axis : *list) {
      if (axis.name == name) {
        return axis;
      }
      known.push_back(axis.name);
    }
  }
  std::sort(known.begin(), known.end());
  return fail(
      error("mesh.unknown_axis", "the mesh has no axis '" + name + "'" + suggest(name, known)));
}

Expected<Ranks> MeshRanks::at(
    const std::vector<std::pair<std::string, std::uint64_t>>& coordinates) const {
  std::vector<std::pair<Axis, std::uint64_t>> wanted;
  for (const auto& [name, index] : coordinates) {
    PIPER_ASSIGN(Axis axis, find(name));
    if (index >= axis.size) {
      return fail(error("mesh.coordinate", "expected a coordinate below " +
                                               std::to_string(axis.size) + " on mesh axis '" +
                                               name + "', got " + std::to_string(index)));
    }
    wanted.emplace_back(std::move(axis), index);
  }
  Ranks result;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (std::all_of(wanted.begin(), wanted.end(),
                    [&](const auto& want) { return want.first.of(rank) == want.second; })) {
      result.ranks.push_back(rank);
    }
  }
  if (result.ranks.empty()) {
    return fail(error("mesh.coordinate", "no rank has all those coordinates"));
  }
  return result;
}

bool MeshRanks::extends(const Ranks& group, const std::string& axis) const {
  const Expected<Axis> along = find(axis);
  PIPER_CHECK(along.has_value(), "no axis " + axis);
  return std::all_of(group.ranks.begin(), group.ranks.end(), [&](std::uint32_t rank) {
    for (std::uint32_t i = 0; i < along->size; ++i) {
      const std::uint32_t other = rank - along->of(rank) * along->stride + i * along->stride;
      if (std::find(group.ranks.begin(), group.ranks.end(), other) == group.ranks.end()) {
        return false;
      }
    }
    return true;
  });
}

Expected<std::vector<Ranks>> MeshRanks::along(const std::vector<std::string>& axes) const {
  for (const std::string& name : axes) {
    PIPER_TRY(find(name));
  }
  const auto varies = [&](const Axis& axis) {
    const auto named = [&](std::string_view name) {
      return std::find(axes.begin(), axes.end(), name) != axes.end();
    };
    return named(axis.name) ||
           ((axis.name == "ep" || axis.name == "edp") && !aliases_.empty() && named("dp"));
  };
  std::map<std::vector<std::uint32_t>, std::size_t> group_of;
  std::vector<Ranks> groups;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    std::vector<std::uint32_t> fixed;
    for (const Axis& axis : axes_) {
      if (!varies(axis)) {
        fixed.push_back(axis.of(rank));
      }
    }
    const auto [where, added] = group_of.try_emplace(std::move(fixed), groups.size());
    if (added) {
      groups.emplace_back();
    }
    groups[where->second].ranks.push_back(rank);
  }
  return groups;
}

}  // namespace piper
