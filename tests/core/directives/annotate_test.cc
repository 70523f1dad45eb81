// What holds of all directives together: defaults and claims.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

TEST(Annotate, RunsEverythingEverywhereWhenNobodySaysAnything) {
  const Expected<Annotated> dag = annotate(toy_config(1, 2, 2), toy_model({.layers = 1}), {});

  ASSERT_TRUE(dag);
  EXPECT_EQ(print(*dag),
            "microbatches 2\n"
            "region 0 @0,1 replicated zero 0 on reduce\n"
            "region 1 layer=0 @0,1 replicated zero 0 on reduce\n"
            "region 2 @0,1 replicated zero 0 on reduce\n");
}

TEST(Claims, RefuseTwoOwnersAndShowBothLines) {
  Proposal first = says({}), second = says({});
  second.from = {"zag", {"job.toml", 14, 1}};
  second.claims = {{Claim::Kind::axis, "pp", second.from}};

  const Expected<Annotated> dag = annotate(toy_config(2, 1, 1), toy_model(), {first, second});

  ASSERT_FALSE(dag);
  EXPECT_EQ(to_string(dag.error()),
            "job.toml:14:1: error: zag and zig both claim mesh axis 'pp' [claim.conflict]\n"
            "job.toml:9:1: note: first claimed by zig");
}

TEST(Claims, RefuseAnAxisThatNobodyUses) {
  const Expected<Annotated> dag = annotate(toy_config(2, 1, 1), toy_model(), {});

  ASSERT_FALSE(dag);
  EXPECT_EQ(to_string(dag.error()),
            "job.toml: error: mesh axis 'pp' has size 2 but no [[strategy]] or [[directive]] uses "
            "it [claim.axis]");
}

TEST(Claims, NameWhoPlacesAlongAnAxisAndHasNotClaimedIt) {
  Proposal proposal = says({{PlaceDirective{{}, {{0}}, "compute"}, {"zig", {"job.toml", 9, 1}}}});
  proposal.claims.clear();

  const Expected<Annotated> dag = annotate(toy_config(2, 1, 1), toy_model(), {proposal});

  ASSERT_FALSE(dag);
  EXPECT_EQ(to_string(dag.error()),
            "job.toml:9:1: error: zig: places along mesh axis 'pp' and has not claimed it "
            "(claim_axis) [claim.axis]\n"
            "job.toml: note: its size is 2");
}

}  // namespace
}  // namespace piper
