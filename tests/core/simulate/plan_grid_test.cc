// Pictures of plans on rows over time.
#include "core/simulate/plan_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/show/svg.h"
#include "tests/support/golden.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/svg_texts.h"

namespace piper {
namespace {

using test::expect_golden;
using test::pipeline;

Grid drawn(const test::PipelineCase& made, std::optional<std::uint32_t> program = std::nullopt) {
  Expected<Grid> grid = plan_grid(made.plan, made.model, "toy on pp 2", {"a fact"}, program);
  return grid ? *std::move(grid) : Grid{};
}

TEST(PlanGrid, HasARowAStreamAndABoxATask) {
  const auto made = pipeline({.stages = 2, .microbatches = 3});

  const Grid grid = drawn(made);

  EXPECT_EQ(grid.boxes.size(),
            made.plan.programs[0].tasks.size() + made.plan.programs[1].tasks.size());
  EXPECT_EQ(grid.rows.front().group, "rank 0");
  EXPECT_EQ(grid.rows.front().label, "compute");
  EXPECT_EQ(grid.boxes.front().label, "0");
  EXPECT_EQ(grid.boxes.front().title, "0F0@0");
}

TEST(PlanGrid, OfOneProgramHasItsRowsAlone) {
  const auto made = pipeline({.stages = 2, .replicas = 2, .microbatches = 3});

  const Grid grid = drawn(made, 1);

  EXPECT_EQ(grid.boxes.size(), made.plan.programs[1].tasks.size());
  EXPECT_TRUE(std::all_of(grid.rows.begin(), grid.rows.end(),
                          [](const GridRow& row) { return row.group == "ranks 2, 3"; }));
}

TEST(PlanGrid, RefusesWhatNobodyCouldRead) {
  auto made = pipeline({.stages = 2, .microbatches = 40});
  while (made.plan.programs.size() * made.plan.programs.back().tasks.size() <= kMostPictured) {
    made.plan.programs.push_back(made.plan.programs.back());
  }

  const Expected<Grid> grid = plan_grid(made.plan, made.model, "", {});

  ASSERT_FALSE(grid);
  EXPECT_EQ(grid.error().front().code, "show.too_large");
}

TEST(PlanGrid, PrintsAsSvg) {
  const auto made = pipeline({.stages = 2, .replicas = 2, .microbatches = 2, .folded = true});

  expect_golden("show/grid", svg(drawn(made)));
}

TEST(Svg, BoxesOfARowDoNotOverlap) {
  Grid grid;
  grid.rows = {{"rank 0", "compute", true}};
  for (std::uint32_t i = 0; i < 100; ++i) {
    grid.boxes.push_back({0, i * 0.001, i * 0.001 + 0.0001, {}, "", ""});
  }
  grid.boxes.push_back({0, 500, 501, {}, "", ""});

  const std::string text = svg(grid);

  double end = 0;
  for (std::size_t at = text.find("<rect", text.find("#f7f7f7")); at != std::string::npos;
       at = text.find("<rect", at + 1)) {
    const double x = std::stod(text.substr(text.find("x=\"", at) + 3));
    const double width = std::stod(text.substr(text.find("width=\"", at) + 7));
    EXPECT_GE(x, end - 0.011);  // positions have two decimals
    end = x + width;
  }
  EXPECT_GT(end, 0);
}

// "loss report" was drawn under the next square with the widest face that is usual, DejaVu Sans.
TEST(Svg, TakesTextForAsWideAsTheWidestUsualFaceDrawsIt) {
  EXPECT_GE(text_width("loss report", 11), 58.58);
  EXPECT_GE(text_width("rank 0", 11, /*bold=*/true), 39.47);
  EXPECT_LE(text_width("loss report", 11), 62);
  EXPECT_EQ(text_width("\u2026", 10), 10);
}

TEST(Svg, TextsOfAPictureLieApartAndInsideIt) {
  test::expect_texts_apart(svg(drawn(pipeline({.stages = 2, .microbatches = 3}))));
  test::expect_texts_apart(
      svg(drawn(pipeline({.stages = 2, .replicas = 2, .microbatches = 2, .folded = true}))));
  Grid grid = drawn(pipeline({.stages = 2, .microbatches = 1}));
  for (const char* label : {"token count, gradient norm, loss report", "MMMM WWWW", "send"}) {
    grid.legend.push_back({{1, 2, 3}, label});
    grid.legend.insert(grid.legend.begin(), {{1, 2, 3}, label});
  }
  test::expect_texts_apart(svg(grid));
}

TEST(Svg, EscapesWhatUsersNamed) {
  Grid grid;
  grid.title = "a <b> & \"c\"";

  EXPECT_NE(svg(grid).find("a &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
}

}  // namespace
}  // namespace piper
