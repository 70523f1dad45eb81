// Names of streams that core keeps to itself.
#include <gtest/gtest.h>

#include <string>

#include "core/directives/annotate.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

const Provenance kFrom{"zig", {"job.toml", 9, 1}};

template <typename What>
std::string refusal(What what) {
  Proposal proposal;
  proposal.from = kFrom;
  proposal.directives = {{std::move(what), kFrom}};
  const auto annotated = annotate(test::toy_config(1, 2, 2), test::toy_model(), {proposal});
  return annotated ? "accepted" : to_string(annotated.error());
}

TEST(StreamName, OfCoreIsRefusedForReductions) {
  ReplicateDirective what;
  what.reduce_stream = "compute";

  EXPECT_EQ(refusal(what),
            "job.toml:9:1: error: zig: replicate {}: expected a reduce_stream of its own, got "
            "'compute', which core uses [directive.stream]");
}

TEST(StreamName, OfCoreIsRefusedForGathers) {
  for (const char* const name : {"compute", "scalar", "input", "send 0>1", "recv 1>0"}) {
    ReplicateDirective what;
    what.gather_stream = name;

    EXPECT_NE(refusal(what).find("[directive.stream]"), std::string::npos) << name;
  }
}

TEST(StreamName, OfCoreIsRefusedForExperts) {
  ShardDirective what;
  what.stream = "scalar";

  EXPECT_NE(refusal(what).find("expected a stream of its own, got 'scalar'"), std::string::npos);
}

TEST(StreamName, IsNotEmpty) {
  ReplicateDirective what;
  what.reduce_stream = "";

  EXPECT_EQ(refusal(what),
            "job.toml:9:1: error: zig: replicate {}: expected a reduce_stream with a name, got '' "
            "[directive.stream]");
}

TEST(StreamName, MayBeSharedByGathersAndReductions) {
  ReplicateDirective what;
  what.reduce_stream = what.gather_stream = "data";

  EXPECT_EQ(refusal(what), "accepted");
}

TEST(Place, RefusesToLeaveARankWithoutWork) {
  Proposal proposal;
  proposal.from = kFrom;
  proposal.directives = {{PlaceDirective{{}, {{1}}, "compute"}, kFrom}};

  const auto annotated = annotate(test::toy_config(1, 2, 2), test::toy_model(), {proposal});

  ASSERT_FALSE(annotated);
  EXPECT_EQ(to_string(annotated.error()),
            "job.toml:9:1: error: expected places that use all 2 ranks, but nothing is placed on "
            "rank 0 [place.idle]");
}

}  // namespace
}  // namespace piper
