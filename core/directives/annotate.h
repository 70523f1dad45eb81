// All proposals onto the model, in the fixed order of phases (DirectivePhase), so that plugins
// compose without caring who came first; within a phase as sequence.h says.
#pragma once

#include <vector>

#include "core/directives/annotated.h"

namespace piper {

// Resolves claims, applies the directives, then core's defaults: the batch is split by [training]
// microbatches unless a plugin claims it; what nothing places runs on all ranks; what nothing
// replicates is replicated on its place; the job's [activation_checkpoint] is recomputed. Errors:
// claim.conflict (both plugins and lines), claim.axis (an axis of size > 1 that nobody uses), and
// those of the directives.
Expected<Annotated> annotate(const Config& config, const ModelGraph& model,
                             const std::vector<Proposal>& proposals);

}  // namespace piper
