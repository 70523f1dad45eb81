// The names of operations and buffers, in the order of their enumerations: as they are printed and
// read back.
#pragma once

#include <array>
#include <string_view>

#include "core/plan/plan.h"

namespace piper {

inline constexpr std::array<std::string_view, 20> kOpNames{
    "forward",      "backward",    "backward_input", "backward_weight", "recompute",
    "update",       "send",        "recv",           "all_reduce",      "reduce_scatter",
    "all_gather",   "all_to_all",  "broadcast",      "token_count",     "grad_norm",
    "finite_check", "loss_report", "statistic",      "state_update",    "input",
};
static_assert(static_cast<std::size_t>(Op::input) + 1 == kOpNames.size());

inline constexpr std::array<std::string_view, 14> kBufferNames{
    "input",     "activation",      "gradient",    "saved",     "parameter", "parameter_gradient",
    "optimizer", "loss_sum",        "token_count", "grad_norm", "gathered",  "full_gradient",
    "routed",    "routed_gradient",
};
static_assert(static_cast<std::size_t>(Buffer::Kind::routed_gradient) + 1 == kBufferNames.size());

inline constexpr std::array<std::string_view, 3> kStreamKinds{"compute", "communication", "host"};
static_assert(static_cast<std::size_t>(Stream::Kind::host) + 1 == kStreamKinds.size());

}  // namespace piper
