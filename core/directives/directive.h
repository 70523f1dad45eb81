// What a strategy may say. Plain data: plugins make it through the ABI, core makes the same for its
// defaults.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/ids.h"

namespace piper {

enum class Pass : std::uint8_t { forward, backward, backward_input, backward_weight, update };

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
};
std::string to_string(const Filter& filter);

// An ordered list of distinct ranks. Member i of one group talks to member i of another.
struct Ranks {
  std::vector<std::uint32_t> ranks;
  bool operator==(const Ranks&) const = default;
};

// Names a group of regions: index `index` of tag `name`, for every region that the filter selects.
struct TagDirective {
  Filter filter;
  std::string name;
  std::uint32_t index = 0;
};

// Micro-batches: cuts the batch along `dim` into n parts, the remainder to the earlier ones.
struct SplitDirective {
  Filter filter;
  std::string dim = "MB";
  std::uint32_t n = 1;
};

// B becomes BI and BW.
struct SplitBackwardDirective {
  Filter filter;
};

// Who executes. All ranks of a place share one program.
struct PlaceDirective {
  Filter filter;
  Ranks ranks;
  std::string stream = "compute";
};

// Parameters of the selected chunks live on all `ranks`.
struct ReplicateDirective {
  Filter filter;
  Ranks ranks;
  std::string reduce_stream = "reduce";
};

// Temporal order between sub-DAGs: everything a group selects runs before everything the next one
// selects, on each place's compute stream.
struct OrderDirective {
  std::vector<std::vector<Filter>> groups;
};

// The same, packed: a chain of single actions on the compute stream of `ranks`.
struct Action {
  std::uint32_t stage = 0;  // index of tag "PP"
  std::uint32_t microbatch = 0;
  Pass pass = Pass::forward;
  bool operator==(const Action&) const = default;
};
struct OrderChainDirective {
  Ranks ranks;
  std::vector<Action> actions;
};

// Where a directive comes from: the plugin ("core" for defaults) and its [[strategy]] table.
struct Provenance {
  std::string plugin;
  Location where;
  bool operator==(const Provenance&) const = default;
};

struct Directive {
  std::variant<TagDirective, SplitDirective, SplitBackwardDirective, PlaceDirective,
               ReplicateDirective, OrderDirective, OrderChainDirective>
      what;
  Provenance from;
};
// One line: `place {PP=1} ranks=[1, 3] stream=compute   # interleaved1f1b, job.toml:12`.
std::string to_string(const Directive& directive);

// "This kind of directive on this mesh axis (or tag) is mine." Two exclusive claims of one thing
// are an error that shows both.
struct Claim {
  enum class Kind : std::uint8_t { axis, split, order };
  Kind kind = Kind::axis;
  std::string name;  // the axis; "" for split and order
  Provenance from;
};

// All that one strategy says; accepted whole or not at all.
struct Proposal {
  Provenance from;
  std::vector<Claim> claims;
  std::vector<Directive> directives;
};

}  // namespace piper
