// Why a task waits for another one of its program.
#pragma once

#include <string>

#include "core/lower/dag.h"
#include "core/lower/edge_values.h"
#include "core/plan/plan.h"

namespace piper {

// `data %6`, `posted no earlier`, `reuses bytes of the arena, ...`, ...: every reason that holds,
// data first.
std::string wait_reason(const Plan& plan, const Program& program, const Dag& dag,
                        const EdgeValues& edge_values, TaskId waiter, const Wait& wait);

// Why an edge that carries nothing holds a task of this operation back: `posted no earlier than
// this`, or `otherwise`.
std::string temporal_reason(Op op, const char* otherwise);

std::string buffer_text(const Buffer& buffer);  // `activation %6 m3`

}  // namespace piper
