// What the tests of directives share: a toy model of two layers on two ranks, and what a strategy
// "zig" at job.toml:9:1 says about it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/directives/annotate.h"
#include "tests/support/golden.h"
#include "tests/support/toy_model.h"

namespace piper::test {

inline const Provenance kFrom{"zig", {"job.toml", 9, 1}};

inline Filter layers(std::uint32_t first, std::uint32_t last) {
  return {{{"layer", Condition::Kind::in_range, {first, last}}}, {}};
}
inline Filter stage(std::uint32_t s) {
  return {{{"PP", Condition::Kind::equals, {s}}}, {}};
}
inline Filter regions(std::uint32_t first, std::uint32_t last) {
  return {{{"REGION", Condition::Kind::in_range, {first, last}}}, {}};
}

inline Proposal says(std::vector<Directive> directives) {
  Proposal proposal;
  proposal.from = kFrom;
  proposal.claims = {{Claim::Kind::axis, "pp", kFrom}};
  proposal.directives = std::move(directives);
  for (Directive& directive : proposal.directives) {
    directive.from = kFrom;
  }
  return proposal;
}

inline Expected<Annotated> annotated(std::vector<Directive> directives, std::uint32_t pp = 2,
                                     std::uint32_t dp = 1) {
  return annotate(toy_config(pp, dp, 2), toy_model({.layers = 2}), {says(std::move(directives))});
}

inline std::string after(std::vector<Directive> directives, std::uint32_t pp = 2,
                         std::uint32_t dp = 1) {
  const Expected<Annotated> dag = annotated(std::move(directives), pp, dp);
  return dag ? print(*dag) : to_string(dag.error());
}

inline std::string refusal(std::vector<Directive> directives, std::uint32_t pp = 2,
                           std::uint32_t dp = 1) {
  const Expected<Annotated> dag = annotated(std::move(directives), pp, dp);
  return dag ? "accepted" : to_string(dag.error());
}

inline const Directive kTag0{TagDirective{regions(0, 1), "PP", 0}, {}};
inline const Directive kTag1{TagDirective{regions(2, 3), "PP", 1}, {}};
inline const Directive kPlace0{PlaceDirective{stage(0), {{0}}, "compute"}, {}};
inline const Directive kPlace1{PlaceDirective{stage(1), {{1}}, "compute"}, {}};

// The golden tests/golden/directives/NAME.txt: the model before the last directive, and after it.
inline void expect_before_and_after(const std::string& name, std::vector<Directive> directives,
                                    std::uint32_t pp = 2, std::uint32_t dp = 1) {
  Directive last = directives.back();
  last.from = kFrom;
  const std::string with = after(directives, pp, dp);
  directives.pop_back();
  expect_golden("directives/" + name, "before\n" + after(directives, pp, dp) + "\nafter " +
                                          to_string(last) + "\n" + with);
}

}  // namespace piper::test
