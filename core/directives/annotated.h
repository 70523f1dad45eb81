// The model with what the directives say about it. Nothing is expanded or inserted yet: lowering
// does that once, from all of it together, so that no directive undoes another's work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"

namespace piper {

struct Annotated {
  ModelGraph model;  // its regions carry the tags that directives added

  struct Placement {
    Ranks ranks;
    std::uint32_t origin = 0;
  };
  struct Replication {
    Ranks ranks;
    std::string reduce_stream;
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
  std::optional<std::uint32_t> split_origin;  // the split that a plugin asked for; unset: core's
  std::int64_t global_rows = 1;
  std::vector<std::optional<Placement>> placement;      // by RegionId
  std::vector<std::optional<Replication>> replication;  // by RegionId
  std::vector<bool> split_backward;                     // by RegionId
  std::vector<bool> distinguishing;  // by TagId: regions that differ in it are never fused
  std::vector<Order> orders;
  std::vector<Chain> chains;
  std::vector<Provenance> origins;  // 0 is core itself
};

// The regions that `filter` selects, ascending. Errors: directive.unknown_tag (lists the known
// ones), directive.no_match, directive.filter (PASS or MB where `what` selects regions).
Expected<std::vector<RegionId>> select_regions(const Annotated& dag, const Filter& filter,
                                               const Provenance& from, std::string_view what);

// Checks that ranks are distinct and inside the world: directive.ranks.
Status check_ranks(const Ranks& ranks, std::uint32_t world, const Provenance& from,
                   std::string_view what);

// `region 3 (model.cc:41)`, for messages.
std::string describe(const ModelGraph& model, RegionId region);

// One line a region: its tags, who runs it, and the orders. For `piper plan --after`.
std::string print(const Annotated& dag);

}  // namespace piper
