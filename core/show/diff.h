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

// First sizes and counts that differ, then for each program and stream the first tasks that do: by
// name, with what they wait for, free and move, so that another numbering is no difference. "" if
// the plans are the same. `only`: a program; kEveryProgram: all of them.
inline constexpr std::uint32_t kEveryProgram = 0xffffffff;
std::string diff(const NamedPlan& one, const NamedPlan& other, std::uint32_t only = kEveryProgram);

}  // namespace piper
