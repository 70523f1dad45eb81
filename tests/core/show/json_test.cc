// Plans as JSON: they fit the published schema, say what the plan says, and never change their
// form.
#include "core/show/json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/show/json_writer.h"
#include "tests/support/golden.h"
#include "tests/support/json_schema.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/sharded_toy.h"

namespace piper {
namespace {

using nlohmann::json;
using test::expect_golden;
using test::pipeline;
using test::schema_fault;
using test::ShardedShape;

std::string written(const Plan& plan, const ModelGraph& model,
                    std::optional<std::uint32_t> program = std::nullopt) {
  std::ostringstream out;
  write_json(out, plan, model, program);
  return out.str();
}

json schema() {
  std::ifstream file(PIPER_SOURCE_DIR "/docs/plan.schema.json");
  return json::parse(file);
}

TEST(PlanJson, IsPleasantToDiff) {
  const auto made = pipeline({.stages = 2, .replicas = 2, .microbatches = 2, .tied = true});

  expect_golden("show/json", written(made.plan, made.model));
}

TEST(PlanJson, FitsItsSchemaWhateverTheStrategy) {
  const json rules = schema();
  for (const ShardedShape& shape : test::small_shapes()) {
    const test::ShardedJob job = test::sharded_job(shape);
    const Expected<Plans> plans = test::plan(job);
    ASSERT_TRUE(plans) << to_string(plans.error());
    for (const Plan* plan : {&plans->train, &plans->evaluate}) {
      const json value = json::parse(written(*plan, job.model));

      EXPECT_EQ(schema_fault(rules, value), "") << to_string(shape);
    }
  }
}

TEST(PlanJson, DoesNotFitItsSchemaOnceItIsDamaged) {
  const auto made = pipeline();
  const json rules = schema(), good = json::parse(written(made.plan, made.model));
  const auto fault = [&](const char* pointer, const json& by) {
    json bad = good;
    bad[json::json_pointer(pointer)] = by;
    return schema_fault(rules, bad);
  };

  EXPECT_EQ(schema_fault(rules, good), "");
  EXPECT_EQ(fault("/world", "two"), "/world: expected integer");
  EXPECT_EQ(fault("/kind", "tarin"),
            "/kind: expected one of [\"train\",\"evaluate\"], got \"tarin\"");
  EXPECT_EQ(fault("/programs/0/colour", 1), "/programs/0/colour: nothing is allowed here");
  EXPECT_EQ(fault("/programs/0/streams/0/tasks/0", json::object()),
            "/programs/0/streams/0/tasks/0: lacks \"id\"");
  EXPECT_EQ(fault("/chunks/0/id", -1), "/chunks/0/id: expected at least 0");
}

TEST(PlanJson, SaysWhatThePlanSays) {
  const auto made = pipeline({.stages = 2, .microbatches = 3});
  const json value = json::parse(written(made.plan, made.model));

  EXPECT_EQ(value["hash"], hash(made.plan, made.model));
  ASSERT_EQ(value["programs"].size(), 2U);
  for (std::size_t p = 0; p < 2; ++p) {
    const Program& program = made.plan.programs[p];
    std::uint32_t next = 0;
    for (const json& stream : value["programs"][p]["streams"]) {
      for (const json& item : stream["tasks"]) {
        const Task& task = program.tasks[next];
        EXPECT_EQ(item["id"], next++);
        EXPECT_EQ(item["op"], to_string(task.op));
        EXPECT_EQ(item["waits"].size(), task.waits.count);
        EXPECT_EQ(item["reads"].size(), task.reads.count);
        EXPECT_EQ(item["writes"].size(), task.writes.count);
        EXPECT_EQ(item["frees"].size(), task.frees.count);
        EXPECT_EQ(item["records"], task.records);
      }
    }
    EXPECT_EQ(next, program.tasks.size());
    EXPECT_EQ(value["programs"][p]["buffers"].size(), program.buffers.size());
  }
}

TEST(PlanJson, OfOneProgramLeavesTheOthersOut) {
  const auto made = pipeline({.stages = 3, .microbatches = 2});

  const json value = json::parse(written(made.plan, made.model, 1));

  ASSERT_EQ(value["programs"].size(), 1U);
  EXPECT_EQ(value["programs"][0]["id"], 1);
  EXPECT_EQ(value["chunks"].size(), 3U);
}

TEST(JsonWriter, EscapesText) {
  std::ostringstream out;
  JsonWriter writer(out);
  const std::string text = "a \"b\" \\ \n\x01 \xc3\xa9";
  writer.begin_object().field("k\"", text).key("empty").begin_array().end_array().end_object();
  writer.finish();

  const json value = json::parse(out.str());

  EXPECT_EQ(value["k\""], text);
  EXPECT_TRUE(value["empty"].empty());
}

}  // namespace
}  // namespace piper
