// The directive `recompute`, and [activation_checkpoint], which says the same: which regions are
// marked, and a rejection for each thing it requires.
#include "core/directives/recompute.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using Mode = ActivationCheckpointConfig::Mode;

// A table `{ tag = index }` or, for a text, `{ tag = "text" }`, at job.toml:5:10.
RawValue condition(const std::string& tag, const std::string& text) {
  RawValue value;
  value.kind = RawValue::Kind::text;
  value.text = text;
  RawValue table;
  table.where = {"job.toml", 5, 10};
  RawEntry& entry = table.entries.emplace_back();
  entry.key = tag;
  entry.value = value;
  return table;
}

// A tag "EP" on layer 1.
ModelGraph model() {
  ModelGraph made = test::toy_model({.layers = 3});
  const TagId experts = made.intern_tag("EP");
  made.regions[2].tags.push_back({experts, 0});
  return made;
}

Directive recompute(Filter filter) {
  return {RecomputeDirective{std::move(filter)}, test::kFrom};
}

Expected<Annotated> annotated(Mode mode, const RawValue& filter = {},
                              std::vector<Directive> said = {}) {
  Config config = test::toy_config(1, 1, 2);
  config.activation_checkpoint.mode = mode;
  config.activation_checkpoint.filter = filter;
  config.locations["activation_checkpoint.mode"] = {"job.toml", 4, 8};
  return annotate(config, model(), {test::says(std::move(said))});
}

// By region: the unit, or -1.
std::vector<int> units(Mode mode, const RawValue& filter = {}, std::vector<Directive> said = {}) {
  const Expected<Annotated> dag = annotated(mode, filter, std::move(said));
  PIPER_CHECK(dag.has_value(), to_string(dag.error()));
  std::vector<int> list;
  for (std::uint32_t r = 0; r < dag->model.regions.size(); ++r) {
    list.push_back(static_cast<int>(dag->columns.of<Recomputed>(RegionId{r}).unit));
  }
  return list;
}

TEST(Recompute, MarksNothingUnlessAsked) {
  EXPECT_EQ(units(Mode::none), (std::vector<int>{-1, -1, -1, -1, -1}));
}

TEST(Recompute, MarksEveryLayerAsAUnitOfItsOwn) {
  EXPECT_EQ(units(Mode::full), (std::vector<int>{-1, 0, 1, 2, -1}));
}

TEST(Recompute, MarksWhatTheFilterSelects) {
  EXPECT_EQ(units(Mode::selective, condition("layer", "1..2")),
            (std::vector<int>{-1, -1, 0, 1, -1}));
  EXPECT_EQ(units(Mode::selective, condition("EP", "*")), (std::vector<int>{-1, -1, 0, -1, -1}));
}

TEST(Recompute, TakesConsecutiveRegionsOutsideLayersTogether) {
  EXPECT_EQ(units(Mode::selective, condition("layer", "-")), (std::vector<int>{0, -1, -1, -1, 1}));
}

TEST(Recompute, MarksWhatADirectiveSelectsAsTheSectionOfTheJobDoes) {
  EXPECT_EQ(units(Mode::none, {}, {recompute(test::layers(0, 2))}), units(Mode::full));
  EXPECT_EQ(units(Mode::none, {}, {recompute(test::regions(0, 1))}),
            (std::vector<int>{0, 1, -1, -1, -1}));  // another layer, another unit
}

TEST(Recompute, LeavesWhatIsRecomputedAlreadyAsItIs) {
  EXPECT_EQ(units(Mode::full, {}, {recompute(test::layers(1, 1))}),
            (std::vector<int>{-1, 1, 0, 2, -1}));
  EXPECT_EQ(units(Mode::none, {}, {recompute(test::layers(1, 1)), recompute(test::layers(0, 1))}),
            (std::vector<int>{-1, 1, 0, -1, -1}));
}

TEST(Recompute, ChangesTheModelAsShown) {
  test::expect_before_and_after("recompute", {recompute(test::layers(0, 1))}, 1);
}

TEST(Recompute, RefusesADirectiveThatMatchesNothing) {
  EXPECT_EQ(test::refusal({recompute(test::layers(7, 9))}, 1),
            "job.toml:9:1: error: zig: recompute {layer=7..9} matches nothing "
            "[directive.no_match]");
}

TEST(Recompute, IsShownWithTheModel) {
  const Expected<Annotated> dag = annotated(Mode::full);

  ASSERT_TRUE(dag.has_value());
  EXPECT_NE(print(*dag).find("region 2 layer=1 EP=0 @0 replicated zero 0 on reduce recomputed 1\n"),
            std::string::npos)
      << print(*dag);
}

TEST(Recompute, RefusesAFilterThatMatchesNothing) {
  EXPECT_EQ(to_string(annotated(Mode::selective, condition("layer", "7..9")).error()),
            "job.toml:5:10: error: job: activation_checkpoint {layer=7..9} matches nothing "
            "[directive.no_match]");
}

TEST(Recompute, RefusesATagThatTheModelDoesNotHave) {
  const Expected<Annotated> dag = annotated(Mode::selective, condition("layr", "*"));

  ASSERT_FALSE(dag.has_value());
  EXPECT_EQ(dag.error().front().code, "directive.unknown_tag");
  EXPECT_NE(to_string(dag.error()).find("layer"), std::string::npos) << to_string(dag.error());
}

TEST(Recompute, RefusesAFilterOfMicrobatchesOrPasses) {
  for (const char* key : {"MB", "PASS"}) {
    const Expected<Annotated> dag =
        annotated(Mode::selective, condition(key, key[0] == 'M' ? "0..0" : "F"));
    ASSERT_FALSE(dag.has_value()) << key;
    EXPECT_EQ(dag.error().front().code, "directive.filter") << to_string(dag.error());
  }
}

}  // namespace
}  // namespace piper
