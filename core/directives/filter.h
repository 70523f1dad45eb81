// The words that all directives share: which chunks, and which ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"

namespace piper {

enum class Pass : std::uint8_t { forward, backward, backward_input, backward_weight, update };
std::string_view name(Pass pass);  // "F", "B", "BI", "BW", "U"

// One condition on a tag of a chunk.
struct Condition {
  enum class Kind : std::uint8_t { equals, in_set, in_range, present, absent };
  std::string tag;  // a tag's name, "MB" (the micro-batch), or "REGION" (the region's number in the
                    // model graph)
  Kind kind = Kind::equals;
  std::vector<std::uint32_t>
      values;  // equals: 1; in_set: any; in_range: first and last, both included

  bool holds(bool is_present, std::uint32_t value) const;
};

// Selects chunks: every condition holds, and the pass is one of `passes` (empty: any). No
// conditions: everything.
struct Filter {
  std::vector<Condition> conditions;
  std::vector<Pass> passes;
  Location where = {};  // of the filter itself, where a job file has it
};
std::string to_string(const Filter& filter);

// An ordered list of distinct ranks. Member i of one group talks to member i of another.
struct Ranks {
  std::vector<std::uint32_t> ranks;
  bool operator==(const Ranks&) const = default;
};
std::string to_string(const Ranks& ranks);  // "ranks=[0, 2]"

// Equal, disjoint groups of ranks: those of mesh axes, or explicit lists. A place uses the groups
// that lie in it, which must partition it. No groups: the place itself is the one group.
struct Family {
  std::vector<Ranks> groups;
  bool operator==(const Family&) const = default;
};
std::string to_string(const Family& family);  // "family=[[0, 2], [1, 3]]"

// "1, 3"
std::string number_list(const std::vector<std::uint32_t>& numbers);

}  // namespace piper
