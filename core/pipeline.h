// The whole planner: from a job and a captured model to two proven plans. Read pipeline.cc first.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// Called after every phase with its name and a printer of its result (`piper plan --after`).
using Trace = std::function<void(std::string_view phase, const std::function<std::string()>& text)>;

// `proposals` are what the job's strategies said, in the order of the [[strategy]] tables.
Expected<Plans> plan(const Config& config, const ModelGraph& model,
                     const std::vector<Proposal>& proposals, const Trace& trace = {});

}  // namespace piper
