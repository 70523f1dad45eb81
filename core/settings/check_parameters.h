// Settings that name parameters, held against the model that they are for.
#pragma once

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/ir/model_graph.h"

namespace piper {

// Refuses a glob of [[optimizer.group]] that matches no parameter, a group to which earlier ones
// leave none, and a job in which every parameter is frozen. Gives remarks: what has no effect or
// less than it says. Call it once the model is known, before planning.
//
// Codes: optimizer.group, model.freeze; config.no_effect, config.less_effect (remarks).
Expected<Diagnostics> check_parameters(const Config& config, const ModelGraph& model);

}  // namespace piper
