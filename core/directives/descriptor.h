// What core knows of each directive: one descriptor, in the directive's own source. Reading tables,
// sorting, printing, applying and fusing ask it, and name no directive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/ids.h"
#include "core/directives/claim.h"
#include "core/directives/filter.h"

namespace piper {

struct Annotated;
struct Config;
struct Directive;
struct DirectiveKey;
class DirectiveTable;

// In which order directives are applied; within a phase as sequence.h says.
enum class DirectivePhase : std::uint8_t {
  tag,
  split,
  split_backward,
  place,
  replicate,
  shard,
  order,
  recompute
};

// What becomes of neighbouring regions of which a directive says different things.
enum class Distinguishes : std::uint8_t {
  nothing,
  regions,  // they are never fused into one chunk
  pieces,   // what is fused is cut between them; orders and buckets take the pieces as one
};

// What does not depend on a value. A hook that is null does nothing.
struct DirectiveKind {
  std::string_view op;  // its name
  DirectivePhase phase;

  // The keys of a [[directive]] table; `read` makes the directive of one whose keys were checked,
  // and reports to it what it finds wrong. Null: no table has its name.
  std::vector<DirectiveKey> keys;
  void (*read)(DirectiveTable& table, Directive& into) = nullptr;

  // After the last of its phase: what core says where nobody did, and what must hold by then.
  Expected<Annotated> (*complete)(Annotated dag, const Config& config) = nullptr;

  Distinguishes distinguishes = Distinguishes::nothing;
  // Appends to `key` what it says of a region, as numbers. With `distinguishes`.
  void (*key)(const Annotated& dag, RegionId region, std::vector<std::uint32_t>& key) = nullptr;

  // For print(Annotated): what stands in a region's line, as " @0,2", and lines below all regions.
  std::string (*mark)(const Annotated& dag, RegionId region) = nullptr;
  std::string (*lines)(const Annotated& dag) = nullptr;
};

template <typename What>
struct Descriptor {
  DirectiveKind kind;
  std::string (*text)(const What& what);  // `split_backward {PP=0}`
  // Legality first, then the edit; the value it was given, or all mistakes of one kind.
  Expected<Annotated> (*apply)(Annotated dag, const What& what, const Provenance& from,
                               std::uint32_t origin);
  // What a table that says it claims.
  void (*claim)(const What& what, const Provenance& from, Claims& claims) = nullptr;
};

// Specialised for each directive, beside its struct.
template <typename What>
const Descriptor<What>& descriptor();

}  // namespace piper
