// Values of [[directive]] tables that are more than a text or a number. `path` is what messages
// call the key, as `place.ranks`; every error points at the value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/raw.h"
#include "core/directives/filter.h"
#include "core/directives/mesh_ranks.h"
#include "core/directives/order.h"

namespace piper {

// `{ PP = 0, MB = [0, 1], layer = "0..3", EP = "*", PASS = "F" }`. Codes: config.type,
// config.choice.
Expected<Filter> read_filter(const RawValue& value, const std::string& path);

// `[2, 4]`
Expected<std::vector<std::uint32_t>> read_indices(const RawValue& value, const std::string& path);

// `[0, 2]` or `{ pp = 0 }`. Codes: config.type, mesh.*, directive.ranks.
Expected<Ranks> read_ranks(const RawValue& value, const std::string& path, const MeshRanks& mesh);

// `[[0, 2], [1, 3]]`, `"dp"`, `["pp", "dp"]`. Codes: those of read_ranks and directive.family.
Expected<Family> read_family(const RawValue& value, const std::string& path, const MeshRanks& mesh);

// `[[{ PP = 0, PASS = "F" }], [{ PP = 0, PASS = "B" }]]`
Expected<std::vector<std::vector<Filter>>> read_groups(const RawValue& value,
                                                       const std::string& path);

// `0F0 0F1 (0F2;0B0)OVERLAP_F_B 0I1 0W1`: stage, pass and micro-batch; B is a whole backward, I (or
// BI) the gradients of inputs, W (or BW) those of weights; what stands in parentheses overlaps.
// Code: order.notation.
Expected<std::vector<Action>> read_actions(const RawValue& value, const std::string& path);

}  // namespace piper
