// What the functions of piper_directive_api share: each reads one part of a plugin's struct, and on
// a mistake records it and returns a code other than PIPER_OK. `what` names the directive in
// messages.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/plugin/context.h"

namespace piper {

inline constexpr std::size_t kFilterSize = PIPER_FIRST_SIZE(piper_filter, regions);
inline constexpr std::string_view kRegion = "REGION";

piper_code bad_value(piper_ctx& ctx, const std::string& what, std::int64_t value);

// A filter that an array holds, and one that a directive points to.
piper_code convert(piper_ctx& ctx, const std::string& what, const piper_filter& given, Filter& out);
piper_code read_filter(piper_ctx& ctx, const std::string& what, const piper_filter* given,
                       Filter& out);

// A family of ranks, and one that must have one group.
piper_code read_family(piper_ctx& ctx, const std::string& what, piper_ranks given, Family& out);
piper_code read_group(piper_ctx& ctx, const std::string& what, piper_ranks given, Ranks& out);

// A name that leaves `out` as it is where it is empty.
piper_code read_name(piper_ctx& ctx, piper_str given, std::string& out);

// Runs steps until one fails.
template <typename... Steps>
piper_code in_turn(Steps&&... steps) {
  piper_code code = PIPER_OK;
  static_cast<void>((((code = steps()) == PIPER_OK) && ...));
  return code;
}

// Adds a directive to the plugin's proposal.
piper_code add(piper_ctx& ctx, decltype(Directive::what) what);

// Entries of the table that have a source of their own, api_orders.cc.
piper_code PIPER_CALL order(piper_ctx* ctx, const piper_order* given);
piper_code PIPER_CALL order_chain(piper_ctx* ctx, piper_ranks ranks, const piper_action* actions,
                                  std::uint64_t count, std::uint64_t stride);

}  // namespace piper
