// Changes that break a plan, or may: each kind lists the single changes that it can make to a plan.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace piper::test {

struct MutationKind {
  std::string name;
  // Change number i of this plan; false where there are fewer. A change that leaves the plan as it
  // was is none.
  std::function<bool(Plan&, std::uint32_t i)> change;
};

const std::vector<MutationKind>& mutation_kinds();

}  // namespace piper::test
