// The all-to-alls around chunks of experts: entering and leaving, forward and backward; four a
// micro-batch.
//     F(a) -> F(experts) -> F(b)     ->     F(a) -> a2a -> F(experts) -> a2a -> F(b)
#pragma once

#include <vector>

#include "core/directives/annotated.h"
#include "core/lower/dag.h"
#include "core/lower/expand.h"

namespace piper {

void add_all_to_alls(Dag& dag, const Annotated& annotated, const std::vector<ChunkNodes>& nodes);

// The inputs of an expert chunk that its entering all-to-all routes: those made outside.
std::vector<ValueId> routed_inputs(const Dag& dag, ChunkId experts);
// Its outputs that somebody outside reads.
std::vector<ValueId> routed_outputs(const Dag& dag, ChunkId experts);

}  // namespace piper
