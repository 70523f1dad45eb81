// Names of tasks for people: failures and the progress board.
#pragma once

#include <string>

#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// `backward of stage 1, micro-batch 2`; a stage is the index of tag PP, and chunks without that tag
// go by their number. `send of value 7, micro-batch 0`, `all_reduce of bucket 3`, `grad_norm`.
std::string describe(const Plan& plan, const ModelGraph& model, const Task& task);

// `recv of value 7, micro-batch 0 on stream recv 0>1 of rank 1`
std::string describe(const Plan& plan, const ModelGraph& model, std::uint32_t rank,
                     const Program& program, const Task& task);

}  // namespace piper
