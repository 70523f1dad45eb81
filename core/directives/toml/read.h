// [[directive]] tables: the directives of directive.h written in the job file instead of made by a
// plugin. docs/directives.md describes them.
#pragma once

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/directives/directive.h"

namespace piper {

// What the job's [[directive]] tables say, as one unordered proposal of "job", with the claims that
// a plugin would make for the same: of the split, of the order, and of each mesh axis that a place
// does not extend over or, for experts, of `ep`. Every mistake of every table, at its table or key:
// config.unknown_key, config.missing_key, config.type, config.range, config.choice,
// directive.ranks, directive.family, mesh.*, order.notation.
Expected<Proposal> read_directives(const Config& config);

}  // namespace piper
