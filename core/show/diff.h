// What differs between two plans, as `diff -u` would say it of their tasks.
#pragma once

#include <string>

#include "core/plan/plan.h"

namespace piper {

struct NamedPlan {
  std::string name;  // of its job
  const Plan& plan;
  const ModelGraph& model;
};

struct PlanDifference {
  std::string text;  // "": not even the texts differ
  bool same =
      true;  // but for the names of strategies and the places in job files, which do nothing
};

// First sizes and counts that differ, then for each program and stream the first tasks that do: by
// name, with what they wait for, free and move, so that another numbering is no difference. Where
// all tasks are the same, the first lines of the plans' texts that differ. `only`: a program;
// kEveryProgram: all of them.
inline constexpr std::uint32_t kEveryProgram = 0xffffffff;
PlanDifference diff(const NamedPlan& one, const NamedPlan& other,
                    std::uint32_t only = kEveryProgram);

}  // namespace piper
