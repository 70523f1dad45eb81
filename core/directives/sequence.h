// In which order directives are applied, so that the order of tables in a job file and of plugins
// in it changes nothing.
//
// A unit is what belongs together: a strategy's proposal, whose directives keep their order, or one
// [[directive]] table. Units go by plugin, name, and then by what they say. Phases come first, as
// DirectivePhase has them. Among tags, a unit whose filters use a tag that others give comes after
// those.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/directives/directive.h"

namespace piper {

struct Sequence {
  struct Step {
    const Directive* directive = nullptr;
    std::uint32_t origin = 0;  // index into origins
  };
  std::vector<Step> steps;
  std::vector<Provenance> origins;  // 0 is core itself, then a unit each
};

// Points into `proposals`. Code: tag.cycle, where units give tags that each other's filters use, so
// that what they select would depend on who came first.
Expected<Sequence> sequence(const std::vector<Proposal>& proposals);
Expected<Sequence> sequence(std::vector<Proposal>&& gone) = delete;

}  // namespace piper
