// Values with a dimension that is known at run time only are planned at its maximum.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/pipeline.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

TEST(RunTimeDimension, IsPlannedAtItsMaximum) {
  ModelGraph model = test::toy_model({.layers = 2});
  const Config config = test::toy_config(2, 1, 2);
  const ValueId crossing = model.regions[1].outputs[0];
  model.dimensions = {{"routed", {6, 10}}};
  model.values[index(crossing)].shape = {{6, 10}, {0, 8}};
  model.values[index(crossing)].run_time = {DimensionId{0}, none<DimensionId>()};

  const Expected<Plans> plans = plan(config, model, {test::toy_pipeline(config, model)});

  ASSERT_TRUE(plans) << to_string(plans.error());
  const Affine maximum{6 * 8 * 4, 10 * 8 * 4};
  std::size_t messages = 0;
  for (const Program& program : plans->train.programs) {
    for (const Task& task : program.tasks) {
      if (is_point_to_point(task.op)) {
        EXPECT_EQ(task.bytes, maximum);
        ++messages;
      }
    }
    EXPECT_TRUE(std::any_of(program.buffers.begin(), program.buffers.end(), [&](const Buffer& b) {
      return b.value == crossing && b.bytes == maximum;
    }));
  }
  EXPECT_EQ(messages, 8U);
}

}  // namespace
}  // namespace piper
