// A plan as a picture: a row for each stream of each program, a box for each task, over the time
// that it takes under the unit cost model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/plan/plan.h"
#include "core/show/grid.h"

namespace piper {

// More tasks than this are no picture.
inline constexpr std::size_t kMostPictured = 20000;

// "rank 2", "ranks 2–5", "ranks 0, 2, 4, …"; with ASCII alone, "ranks 2..5", "ranks 0, 2, 4, ...".
std::string rank_list(const std::vector<std::uint32_t>& ranks, bool is_ascii = false);

// `title` and `facts` head the picture. `program`: only that one. Error show.too_large.
Expected<Grid> plan_grid(const Plan& plan, const ModelGraph& model, std::string title,
                         std::vector<std::string> facts,
                         std::optional<std::uint32_t> program = std::nullopt);

}  // namespace piper
