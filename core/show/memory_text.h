// What ranks hold at most, for people: `piper plan`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/plan/plan.h"

namespace piper {

// A table of both plans with a line for each group of ranks that need the same: the peak, the
// computation at which it is reached, and what it is of. With a program, its ranks alone.
std::string memory_text(const Plans& plans, const ModelGraph& model,
                        std::optional<std::uint32_t> program, const std::string& margin);

}  // namespace piper
