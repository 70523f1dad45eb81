// What the printer and the parser of a DAG's text share.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace piper {

inline constexpr std::uint32_t kNoChain = 0xffffffff;
inline constexpr std::array<std::string_view, 5> kRoutes{"none", "enter_forward", "leave_forward",
                                                         "enter_backward", "leave_backward"};

}  // namespace piper
