// Plans as text: read back exactly, hashed, summed up.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "core/base/hash.h"
#include "core/plan/plan.h"
#include "core/plan/text_writer.h"
#include "tests/support/golden.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/text_mutation.h"

namespace piper {
namespace {

using test::expect_golden;
using test::pipeline;
using test::PipelineShape;

std::string refusal(const std::string& text, const ModelGraph& model) {
  const Expected<Plan> plan = parse_plan(text, model, "p.plan");
  return plan ? "accepted" : to_string(plan.error());
}

TEST(PlanText, IsPleasantToRead) {
  const auto made = pipeline({.stages = 2, .replicas = 2, .microbatches = 2, .tied = true});

  expect_golden("plan/text", print(made.plan, made.model));
}

TEST(PlanText, IsReadBackExactly) {
  for (std::uint32_t flags = 0; flags < 32; ++flags) {
    PipelineShape shape{.stages = 4, .replicas = 2, .microbatches = 5};
    shape.tied = (flags & 1U) != 0;
    shape.split_backward = (flags & 2U) != 0;
    shape.folded = (flags & 4U) != 0;
    shape.evaluates = (flags & 8U) != 0;
    shape.frozen_embedding = (flags & 16U) != 0;
    const auto made = pipeline(shape);
    const std::string text = print(made.plan, made.model);

    const Expected<Plan> plan = parse_plan(text, made.model, "p.plan");

    ASSERT_TRUE(plan) << to_string(plan.error());
    EXPECT_TRUE(*plan == made.plan);
    EXPECT_EQ(print(*plan, made.model), text);
  }
}

TEST(PlanText, KeepsFieldsThatNoPlanHasToday) {
  auto made = pipeline();
  Task& task = made.plan.programs[0].tasks[0];
  task.value = ValueId{2};
  task.bucket = BucketId{1};
  task.peer = NodeId{7};
  task.bytes = {-3, 5};
  made.plan.programs[0].buffers[1].microbatch = 1;
  made.plan.programs[0].buffers[1].chunk = ChunkId{1};
  made.plan.programs[0].streams[0].name = "a \"name\"\n";
  made.plan.chunks[0].has_backward = false;
  made.plan.buckets[0].optimizer_group = 3;
  made.plan.chunks[0].microbatches = {0, 1};
  made.plan.chunks[0].experts = true;
  made.plan.chunks[0].expert_parts = 2;
  made.plan.chunks[1].expert_parts = 4;
  made.plan.chunks[1].recompute = true;
  made.plan.buckets[0].expert_parts = 2;
  made.plan.buckets[0].zero = 3;
  made.plan.buckets[0].shards = 4;
  made.plan.buckets[0].keep_gathered = Span::step;
  made.plan.buckets[1].shards = 2;
  made.plan.buckets[1].reduce = Span::step;
  made.plan.communicators.back().kind = Communicator::Kind::collective;
  made.plan.communicators.back().group_size = 2;
  made.plan.programs[0].buffers[2].kind = Buffer::Kind::routed_gradient;
  made.plan.programs[0].buffers[3].kind = Buffer::Kind::gathered;
  made.plan.origins[0].name = "\"in\"ner";

  const Expected<Plan> plan = parse_plan(print(made.plan, made.model), made.model, "p.plan");

  ASSERT_TRUE(plan) << to_string(plan.error());
  EXPECT_TRUE(*plan == made.plan);
}

TEST(PlanText, SaysWhereItIsWrong) {
  const auto made = pipeline();
  const std::string text = print(made.plan, made.model);
  const auto with = [&](const std::string& part, const std::string& by) {
    std::string changed = text;
    return changed.replace(changed.find(part), part.size(), by);
  };

  EXPECT_EQ(refusal("", made.model),
            "p.plan:1:1: error: expected 'piper-plan', got the end of the text [plan.syntax]");
  EXPECT_EQ(refusal(with("plan 1", "plan 9"), made.model),
            "p.plan:1:12: error: expected version 1 of the text of a plan, got 9 [plan.version]");
  EXPECT_EQ(refusal(with("forward ", "forwrd  "), made.model),
            "p.plan:37:11: error: unknown operation 'forwrd' (did you mean 'forward'?) "
            "[plan.syntax]");
  EXPECT_EQ(refusal(with("activation ", "activatoin "), made.model),
            "p.plan:24:15: error: unknown kind of buffer 'activatoin' (did you mean "
            "'activation'?) [plan.syntax]");
  EXPECT_EQ(refusal(with("{PP=0}", "{QQ=0}"), made.model),
            "p.plan:9:10: error: unknown tag 'QQ' (known: layer, PP) [plan.syntax]");
  EXPECT_EQ(refusal(with("wait 11 read", "wait 011 read"), made.model),
            "p.plan:37:52: error: expected '11 read 0 1 2 write 3 4 ', got '011 read 0 1 2 write 3 "
            "4': only the printed form is read back [plan.syntax]");
}

TEST(PlanText, SurvivesDamage) {
  const auto made = pipeline({.stages = 2, .microbatches = 2, .tied = true});
  const std::string text = print(made.plan, made.model);
  std::size_t refused = 0, accepted = 0;
  for (std::uint32_t seed = 0; seed < 10000; ++seed) {
    const std::string damaged = test::TextMutation(seed)(text);

    const Expected<Plan> plan = parse_plan(damaged, made.model, "p.plan");

    if (plan) {
      ++accepted;
      ASSERT_EQ(print(*plan, made.model), damaged);
    } else {
      ++refused;
      for (const Diagnostic& diagnostic : plan.error()) {
        ASSERT_TRUE(diagnostic.code.starts_with("plan.")) << to_string(diagnostic);
        ASSERT_GT(diagnostic.where.line, 0u);
      }
    }
  }
  EXPECT_GT(refused, 5000u);
  EXPECT_GT(accepted, 100u);
}

TEST(PlanHash, IsFnv1aOfTheText) {
  const auto made = pipeline({.microbatches = 40});  // more than one buffer of the writer
  Fnv1a state;
  state.add(print(made.plan, made.model));

  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(state.value()));
  EXPECT_EQ(hash(made.plan, made.model), digits);
}

TEST(PlanHash, ChangesWithOneWait) {
  auto made = pipeline();
  const std::string before = hash(made.plan, made.model);
  made.plan.programs[0].waits[0].previous = true;

  EXPECT_NE(hash(made.plan, made.model), before);
}

TEST(TextWriter, WritesPiecesOfAnyLength) {
  std::string text, expected;
  const auto sink = [&text](std::string_view piece) { text += piece; };
  TextWriter<const decltype(sink)> writer(sink);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const std::string piece(i % 300, static_cast<char>('a' + i % 26));
    writer << piece << i << '\n';
    expected += piece + std::to_string(i) + '\n';
  }
  writer.flush();

  EXPECT_EQ(text, expected);
}

TEST(TextWriter, AlignsAcrossTheEndOfItsBuffer) {
  std::string text;
  const auto sink = [&text](std::string_view piece) { text += piece; };
  TextWriter<const decltype(sink)> writer(sink);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    writer.start_line();
    writer << i;
    writer.pad(9);
    writer << "x\n";
  }
  writer.flush();

  EXPECT_EQ(text.size(), 5000u * 11);
}

}  // namespace
}  // namespace piper
