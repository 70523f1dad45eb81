// Filters: what they select, and what they refuse.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

TEST(Filters, RefuseUnknownTagsWithTheNearest) {
  EXPECT_EQ(refusal({{TagDirective{{{{"leyer", Condition::Kind::present, {}}}, {}}, "PP", 0}, {}}}),
            "job.toml:9:1: error: zig: tag {leyer=*}: the model has no tag 'leyer' (did you mean "
            "'layer'?) "
            "[directive.unknown_tag]");
}

TEST(Filters, RefuseToMatchNothing) {
  EXPECT_EQ(refusal({{TagDirective{layers(7, 9), "PP", 0}, {}}}),
            "job.toml:9:1: error: zig: tag {layer=7..9} matches nothing [directive.no_match]");
}

TEST(Filters, RefusePassesWhereRegionsAreSelected) {
  EXPECT_EQ(refusal({{PlaceDirective{{{}, {Pass::forward}}, {{0}}, "compute"}, {}}}),
            "job.toml:9:1: error: zig: place {PASS=F}: selects regions with all their passes; PASS "
            "is not allowed "
            "here [directive.filter]");
}

TEST(Filters, SelectByEqualitySetRangePresenceAndAbsence) {
  const auto count = [](Condition condition) {
    const Expected<Annotated> dag = annotate(toy_config(1, 1, 1), toy_model({.layers = 4}), {});
    return select_regions(*dag, {{std::move(condition)}, {}}, kFrom, "tag")->size();
  };

  EXPECT_EQ(count({"layer", Condition::Kind::equals, {2}}), 1U);
  EXPECT_EQ(count({"layer", Condition::Kind::in_set, {0, 3, 9}}), 2U);
  EXPECT_EQ(count({"layer", Condition::Kind::in_range, {1, 3}}), 3U);
  EXPECT_EQ(count({"layer", Condition::Kind::present, {}}), 4U);
  EXPECT_EQ(count({"layer", Condition::Kind::absent, {}}), 2U);
}

}  // namespace
}  // namespace piper
