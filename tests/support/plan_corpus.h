// Valid plans that the planner made, of every directive on several meshes: what mutants are made
// of.
#pragma once

#include <string>
#include <vector>

#include "core/directives/annotated.h"
#include "tests/support/job_spec.h"

namespace piper::test {

struct CorpusJob {
  std::string name;  // to_string of its spec
  JobSpec spec;
  SpecJob job;
  Annotated annotated;
  Plans plans;
};

// At least 200, in the same order each time. Every one must plan.
const std::vector<CorpusJob>& plan_corpus();

}  // namespace piper::test
