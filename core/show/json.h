// A plan as JSON, for other programs: docs/plan.schema.json describes it. Keys are always in the
// same order; what does not apply is left out. Written in one pass, so a plan of millions of tasks
// needs no further memory.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>

#include "core/plan/plan.h"

namespace piper {

// `program`: only that one, with all the tables it points into.
void write_json(std::ostream& out, const Plan& plan, const ModelGraph& model,
                std::optional<std::uint32_t> program = std::nullopt);

}  // namespace piper
