// Who says a directive, and what one takes for itself by saying it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"

namespace piper {

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

// "This mesh axis, the split or the order is mine." Two exclusive claims of one thing are an error
// that shows both.
struct Claim {
  enum class Kind : std::uint8_t { axis, split, order };
  Kind kind = Kind::axis;
  std::string name;  // the axis; "" for the others
  Provenance from;
  bool exclusive = true;
};

struct MeshConfig;
class MeshRanks;

// What directives of a job file claim, as a plugin would that says the same. One claim a thing, for
// the first that makes it.
struct Claims {
  const MeshConfig& mesh;
  const MeshRanks& ranks;
  std::vector<Claim> list = {};

  void add(Claim::Kind kind, std::string name, const Provenance& from);
};

}  // namespace piper
