// What a strategy may say. Plain data: plugins make it through the ABI, job files with
// [[directive]] tables, and core makes the same for its defaults. docs/directives.md describes
// each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/directives/claim.h"
#include "core/directives/descriptor.h"
#include "core/directives/order.h"
#include "core/directives/place.h"
#include "core/directives/recompute.h"
#include "core/directives/replicate.h"
#include "core/directives/shard.h"
#include "core/directives/split.h"
#include "core/directives/split_backward.h"
#include "core/directives/tag.h"

namespace piper {

// The registry: a directive is known by its line here. A region's line in print(Annotated) shows
// what they say in this order; the order in which they are applied is that of their phases.
struct Directive {
  std::variant<TagDirective, SplitDirective, PlaceDirective, ReplicateDirective, ShardDirective,
               SplitBackwardDirective, RecomputeDirective, OrderDirective, OrderChainDirective>
      what;
  Provenance from;
};

// Of all directives, in the order of the registry and in that of their phases; and of one.
std::span<const DirectiveKind* const> directive_kinds();
std::vector<const DirectiveKind*> kinds_by_phase();
const DirectiveKind& kind_of(const Directive& directive);

// One line: `place {PP=1} ranks=[1, 3] stream=compute   # interleaved1f1b, job.toml:12`.
std::string to_string(const Directive& directive);
// The same without who says it.
std::string what_text(const Directive& directive);

Expected<Annotated> apply(Annotated dag, const Directive& directive, std::uint32_t origin);
void claim(const Directive& directive, Claims& claims);

// All that one strategy says; accepted whole or not at all.
struct Proposal {
  Provenance from;
  std::vector<Claim> claims;
  std::vector<Directive> directives;
  bool unordered = false;  // tables of a job file: their order says nothing
};

}  // namespace piper
