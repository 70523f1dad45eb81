// Plans that break one rule of the verifier each, made from valid ones by one change.
#pragma once

#include <string>
#include <vector>

#include "tests/support/pipeline_plan.h"

namespace piper::test {

struct BrokenPlan {
  std::string name;            // what was done: "a data edge is dropped"
  std::string code;            // the rule that must find it, alone
  bool is_documented = false;  // the example of its rule in docs/verifier.md
  PipelineCase made;
};

// At least one for each rule; each rule has one that is documented.
std::vector<BrokenPlan> broken_plans();

}  // namespace piper::test
