// What a strategy may say. Plain data: plugins make it through the ABI, job files with
// [[directive]] tables, and core makes the same for its defaults. docs/directives.md describes
// each.
#pragma once

#include <cstdint>
#include <optional>
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
  Location where = {};  // of the filter itself, where a job file has it
};
std::string to_string(const Filter& filter);

// An ordered list of distinct ranks. Member i of one group talks to member i of another.
struct Ranks {
  std::vector<std::uint32_t> ranks;
  bool operator==(const Ranks&) const = default;
};

// Equal, disjoint groups of ranks: those of mesh axes, or explicit lists. A place uses the groups
// that lie in it, which must partition it. No groups: the place itself is the one group.
struct Family {
  std::vector<Ranks> groups;
  bool operator==(const Family&) const = default;
};

// How regions are cut into consecutive parts, which get the indices 0, 1, ... of a tag. The unit is
// an index of tag `over`, or, where it is "", a region; regions without it go with the unit before
// them, those before the first with the first.
struct Partition {
  enum class By : std::uint8_t { count, flops, bytes, boundaries };
  By by =
      By::flops;  // count: equally many units; flops, bytes: the largest part as small as can be
  std::string over = "layer";
  std::uint32_t parts = 1;
  std::vector<std::uint32_t> boundaries;  // the first unit of each part but the first, ascending
};

// Names a group of regions: index `index` of tag `name` for every region that the filter selects;
// with a partition, consecutive parts of them.
struct TagDirective {
  Filter filter;
  std::string name;
  std::uint32_t index = 0;
  std::optional<Partition> partition = std::nullopt;
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

// Who executes. All ranks of a place share one program. The filter may name micro-batches, so that
// a stage lives on several places (bidirectional pipelines).
struct PlaceDirective {
  Filter filter;
  Ranks ranks;
  std::string stream = "compute";
};

// How long a thing lives: through one chain of uses of a bucket, or through the step.
enum class Span : std::uint8_t { chain, step };

// Parameters of the selected chunks live on all ranks of their places. What is sharded, is sharded
// over each group of `family`.
struct ReplicateDirective {
  Filter filter;
  Family family;
  std::string reduce_stream = "reduce";
  std::string gather_stream = "gather";
  bool shard_optimizer = false;    // ZeRO-1
  bool shard_grads = false;        // ZeRO-2; with shard_optimizer
  bool shard_params = false;       // ZeRO-3; with shard_grads
  std::uint64_t bucket_bytes = 0;  // of parameters; 0: a bucket a stage
  std::uint32_t prefetch = 1;      // chains gathered ahead of the one in use
  Span keep_gathered = Span::chain;
  Span reduce = Span::chain;
};

// Experts: parameters of the selected chunks are partitioned over each group of `family`, in
// contiguous blocks; an all-to-all on `stream` before and after, forward and backward.
struct ShardDirective {
  Filter filter;
  Family family;
  std::string stream = "expert";
};

// Temporal order between sub-DAGs: everything that a group selects runs before everything that the
// next one selects, on each place's compute stream. A group of several filters is an overlap group:
// its members are interleaved by list scheduling under the job's cost model.
struct OrderDirective {
  std::vector<std::vector<Filter>> groups;
};

// The same, packed: a chain of single actions on the compute stream of `ranks`.
struct Action {
  std::uint32_t stage = 0;  // index of tag "PP"
  std::uint32_t microbatch = 0;
  Pass pass = Pass::forward;
  // Consecutive actions with the same number other than 0 are an overlap group.
  std::uint32_t overlap = 0;
  bool operator==(const Action&) const = default;
};
struct OrderChainDirective {
  Ranks ranks;
  std::vector<Action> actions;
};

// Where a directive comes from: the plugin ("core" for defaults) and its [[strategy]] table, or
// "job" and its [[directive]] table. Equal: the same one says it, wherever that is written.
struct Provenance {
  std::string plugin;
  Location where;
  std::string name = {};  // of the [[strategy]] table, where it has one
  bool operator==(const Provenance& other) const {
    return plugin == other.plugin && name == other.name;
  }
};

struct Directive {
  std::variant<TagDirective, SplitDirective, SplitBackwardDirective, PlaceDirective,
               ReplicateDirective, ShardDirective, OrderDirective, OrderChainDirective>
      what;
  Provenance from;
};
// One line: `place {PP=1} ranks=[1, 3] stream=compute   # interleaved1f1b, job.toml:12`.
std::string to_string(const Directive& directive);
// The same without who says it.
std::string what_text(const Directive& directive);

// "This kind of directive on this mesh axis (or everywhere) is mine." Two exclusive claims of one
// thing are an error that shows both.
struct Claim {
  enum class Kind : std::uint8_t { axis, split, order, place, replicate, shard };
  Kind kind = Kind::axis;
  std::string name;  // the axis; "" for the others
  Provenance from;
  bool exclusive = true;
};

// All that one strategy says; accepted whole or not at all.
struct Proposal {
  Provenance from;
  std::vector<Claim> claims;
  std::vector<Directive> directives;
  bool unordered = false;  // tables of a job file: their order says nothing
};

}  // namespace piper
