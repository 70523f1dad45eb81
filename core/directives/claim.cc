#include "core/directives/claim.h"

#include <algorithm>
#include <utility>

namespace piper {

void Claims::add(Claim::Kind kind, std::string name, const Provenance& from) {
  const bool known = std::any_of(list.begin(), list.end(), [&](const Claim& other) {
    return other.kind == kind && other.name == name;
  });
  if (!known) {
    list.push_back({kind, std::move(name), from});
  }
}

}  // namespace piper
