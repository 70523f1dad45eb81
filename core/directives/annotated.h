// The model with what the directives say about it. Nothing is expanded or inserted yet: lowering
// does that once, from all of it together, so that no directive undoes another's work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/directives/column.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"

namespace piper {

struct Annotated {
  ModelGraph model;  // its regions carry the tags that directives added

  struct Placement {
    Ranks ranks;
    std::vector<std::uint32_t> microbatches;  // ascending; empty: all
    std::uint32_t origin = 0;
  };
  struct Replication {
    ReplicateDirective what;
    std::uint32_t origin = 0;
  };
  struct Sharding {
    ShardDirective what;
    std::uint32_t origin = 0;
  };
  struct Order {
    std::vector<std::vector<Filter>> groups;
    std::uint32_t origin = 0;
  };
  struct Chain {
    Ranks ranks;
    std::vector<Action> actions;
    std::uint32_t origin = 0;
  };

  std::uint32_t world = 1;
  std::uint32_t microbatches = 1;
  // The split that a plugin asked for; unset: core's.
  std::optional<std::uint32_t> split_origin;
  std::int64_t global_rows = 1;

  static constexpr std::uint32_t kNothing = 0xffffffff;
  // By RegionId: who runs it, and what lowering makes homes of parameters from. The numbers are
  // indices into `replications` and `shardings`; what is not sharded has kNothing.
  Column<std::vector<Placement>> placements;
  Column<std::uint32_t> replication{kNothing};
  Column<std::uint32_t> sharding{kNothing};
  // By what they hold: what else directives say of regions, each in a type of its own.
  Columns columns;
  std::map<std::pair<RegionId, TagId>, std::uint32_t> tag_origin;  // of tags that directives gave
  std::vector<bool> distinguishing;  // by TagId: regions that differ in it are never fused

  std::vector<Replication> replications;
  std::vector<Sharding> shardings;
  std::vector<Order> orders;
  std::vector<Chain> chains;
  std::vector<Provenance> origins;   // 0 is core itself
  std::vector<std::string> remarks;  // what a user wants to know: imbalances

  void distinguish(TagId tag);
  bool distinguishes(TagId tag) const;
};

// The regions that `filter` selects, ascending. Conditions on MB are taken out into `microbatches`
// (the selected ones; empty: all) where that is given. Errors: directive.unknown_tag (lists the
// known ones), directive.no_match, directive.filter (PASS, or MB where it is not allowed).
Expected<std::vector<RegionId>> select_regions(const Annotated& dag, const Filter& filter,
                                               const Provenance& from, std::string_view what,
                                               std::vector<std::uint32_t>* microbatches = nullptr);

// Where a message about a filter points: at the filter in a job file, else at who says it.
const Location& place_of(const Filter& filter, const Provenance& from);

// Checks that ranks are distinct and inside the world: directive.ranks.
Status check_ranks(const Ranks& ranks, std::uint32_t world, const Provenance& from,
                   std::string_view what);

// Checks that groups are of equal size and disjoint: directive.family.
Status check_family(const Family& family, std::uint32_t world, const Provenance& from,
                    std::string_view what);

// The groups of `family` that lie in `place`, as positions in it, or nothing where they do not
// partition it. A family without groups is the place itself.
std::optional<std::vector<std::vector<std::uint32_t>>> groups_in(const Family& family,
                                                                 const Ranks& place);

// Checks that the groups of `family` partition every place of `regions`: `code`, with who placed
// it.
Status check_partition(const Annotated& dag, const std::vector<RegionId>& regions,
                       const Family& family, const Provenance& from, const std::string& what,
                       const std::string& code);

// `region ... is already <what>`, with who said so first.
Diagnostic already(const Annotated& dag, RegionId region, const std::string& what,
                   const std::string& code, const Provenance& from, std::uint32_t first_origin);

// `region 3 layer=2 (model.cc:41)`, for messages.
std::string describe(const ModelGraph& model, RegionId region);

// "0,2"
std::string packed_list(const std::vector<std::uint32_t>& numbers);

// One line a region: its tags, who runs it, and the orders. For `piper plan --after`.
std::string print(const Annotated& dag);

}  // namespace piper
