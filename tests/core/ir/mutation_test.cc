// Thousands of damaged texts: each is refused with a place and a code, or is another graph that
// reads back as it prints.
#include <gtest/gtest.h>

#include <string>

#include "core/ir/model_graph.h"
#include "tests/support/text_mutation.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

TEST(ModelGraphText, SurvivesDamage) {
  ModelGraph whole = test::toy_model({.layers = 3, .tied = true});
  whole.dimensions = {{"routed", whole.values[3].shape[0]}, {"rest", {2, 8}}};
  whole.values[3].run_time = {DimensionId{0}, none<DimensionId>(), none<DimensionId>()};
  const std::string text = print(whole);
  std::size_t refused = 0, accepted = 0;
  for (std::uint32_t seed = 0; seed < 20000; ++seed) {
    const std::string damaged = test::TextMutation(seed)(text);

    const Expected<ModelGraph> model = parse_model_graph(damaged, "m.graph");

    if (model) {
      ++accepted;
      ASSERT_EQ(print(*model), damaged);
      ASSERT_TRUE(verify(*model));
    } else {
      ++refused;
      for (const Diagnostic& diagnostic : model.error()) {
        ASSERT_TRUE(diagnostic.code.starts_with("ir.")) << to_string(diagnostic);
        ASSERT_EQ(diagnostic.where.file, "m.graph");
        ASSERT_GT(diagnostic.where.line, 0u);
      }
    }
  }
  EXPECT_GT(refused, 15000u);
  EXPECT_GT(accepted, 100u);  // else only gross damage was tried
}

}  // namespace
}  // namespace piper
