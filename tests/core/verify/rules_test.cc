// Each rule refuses a plan that breaks it alone, in exact words: goldens under tests/golden/verify.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "core/verify/verify.h"
#include "tests/support/broken_plans.h"
#include "tests/support/golden.h"
#include "tests/support/sharded_toy.h"
#include "tests/support/symbolic_run.h"

namespace piper {
namespace {

using test::broken_plans;
using test::BrokenPlan;
using test::expect_golden;
using test::pipeline;
using test::PipelineShape;

const std::set<std::string> kCodes{
    "plan.form",           "plan.cycle",         "plan.missing_wait",
    "plan.unmatched_send", "plan.channel_order", "plan.collective_order",
    "plan.deadlock",       "plan.race",          "plan.release",
    "plan.arena",          "plan.reduction",     "plan.update",
    "plan.materialised"};

std::string refusal(const BrokenPlan& broken) {
  const Status status = verify(broken.made.plan, broken.made.model);
  return status ? "accepted" : to_string(status.error()) + "\n";
}

TEST(Verify, FindsTheRuleThatIsBrokenAndNoOther) {
  for (const BrokenPlan& broken : broken_plans()) {
    const Status status = verify(broken.made.plan, broken.made.model);

    ASSERT_FALSE(status) << broken.name;
    for (const Diagnostic& diagnostic : status.error()) {
      EXPECT_EQ(diagnostic.code, broken.code) << broken.name << ": " << to_string(diagnostic);
    }
  }
}

TEST(Verify, SaysWhatIsWrongInExactWords) {
  for (const BrokenPlan& broken : broken_plans()) {
    std::string file = broken.code + " " + broken.name;
    std::replace_if(
        file.begin(), file.end(), [](char c) { return c == ' ' || c == '.'; }, '_');
    expect_golden("verify/" + file, refusal(broken));
  }
}

TEST(Verify, HasABrokenPlanForEachRule) {
  std::set<std::string> codes;
  for (const BrokenPlan& broken : broken_plans()) {
    codes.insert(broken.code);
  }

  EXPECT_EQ(codes, kCodes);
}

// Codes "plan...." in the sources of core/verify, or at the head of sections of docs/verifier.md.
std::set<std::string> codes_in(const std::string& text, const std::string& before) {
  std::set<std::string> codes;
  for (std::size_t at = 0; (at = text.find(before + "plan.", at)) != std::string::npos;) {
    at += before.size();
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.", at);
    codes.insert(text.substr(at, end - at));
  }
  return codes;
}

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Each code that core/verify reports has a section in the docs, and plans that break its rule.
TEST(Verify, HasASectionAndABrokenPlanForEachCodeInItsSources) {
  const std::filesystem::path root = PIPER_SOURCE_DIR;
  std::set<std::string> reported, tested = kCodes;
  for (const auto& file : std::filesystem::directory_iterator(root / "core" / "verify")) {
    if (file.path().extension() == ".cc") {
      reported.merge(codes_in(read(file.path()), "\""));
    }
  }
  // Those that need more than the plan have tests of their own.
  for (const char* const test : {"capacity_test.cc", "directed_order_test.cc"}) {
    tested.merge(codes_in(read(root / "tests" / "core" / "verify" / test), "["));
  }

  EXPECT_EQ(codes_in(read(root / "docs" / "verifier.md"), "\n## "), reported);
  EXPECT_EQ(tested, reported);
}

TEST(Verify, AgreesWithASymbolicRunThatSumsAreWrong) {
  for (const BrokenPlan& broken : broken_plans()) {
    if (broken.code == "plan.reduction" && broken.name.find("does not wait") == std::string::npos) {
      EXPECT_NE(test::run_symbolically(broken.made.plan, broken.made.model, 0).fault, "")
          << broken.name;
    }
  }
}

TEST(Verify, SaysTheSameTwice) {
  for (const BrokenPlan& broken : broken_plans()) {
    EXPECT_EQ(refusal(broken), refusal(broken)) << broken.name;
  }
}

TEST(Verify, StopsAfterTwentyErrors) {
  auto made = pipeline({.microbatches = 30});
  for (Buffer& buffer : made.plan.programs[0].buffers) {
    buffer.bytes = {1, 1};
  }

  const Status status = verify(made.plan, made.model);

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().size(), 20u);
}

TEST(Verify, RefusesAModelThatIsWrongBeforeItsPlan) {
  auto made = pipeline();
  made.model.loss = none<ValueId>();

  const Status status = verify(made.plan, made.model);

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error()[0].code, "ir.loss");
}

TEST(Verify, AcceptsPipelinesOfEveryShape) {
  for (const std::uint32_t stages : {1U, 2U, 4U}) {
    for (const std::uint32_t replicas : {1U, 2U}) {
      for (const std::uint32_t microbatches : {1U, 2U, 5U}) {
        for (std::uint32_t flags = 0; flags < 32; ++flags) {
          PipelineShape shape{.stages = stages, .replicas = replicas, .microbatches = microbatches};
          shape.tied = (flags & 1U) != 0;
          shape.split_backward = (flags & 2U) != 0;
          shape.folded = (flags & 4U) != 0 && stages % 2 == 0;
          shape.evaluates = (flags & 8U) != 0;
          shape.frozen_embedding = (flags & 16U) != 0;
          const auto made = pipeline(shape);

          const Status status = verify(made.plan, made.model);

          ASSERT_TRUE(status) << stages << "x" << replicas << " M " << microbatches << " flags "
                              << flags << ": " << to_string(status.error());
        }
      }
    }
  }
}

// Random numbers in place of the plan's own: refused or not, never a crash.
TEST(Verify, SurvivesNonsense) {
  std::uint32_t state = 1;
  const auto random = [&state](std::uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % bound;
  };
  std::size_t refused = 0;
  std::vector<test::PipelineCase> bases(4, pipeline({.microbatches = 3, .tied = true}));
  for (const test::ShardedShape& shape : test::small_shapes()) {
    test::ShardedJob job = test::sharded_job(shape);
    const Expected<Plans> plans = test::plan(job);
    ASSERT_TRUE(plans);
    bases.push_back({job.model, plans->train});
  }
  for (int i = 0; i < 6000; ++i) {
    auto made = bases[random(static_cast<std::uint32_t>(bases.size()))];
    Program& program =
        made.plan.programs[random(static_cast<std::uint32_t>(made.plan.programs.size()))];
    for (std::uint32_t change = 0; change < 1 + random(3); ++change) {
      const std::uint32_t value = random(3) == 0 ? 0xffffffff : random(40);
      Task& task = program.tasks[random(static_cast<std::uint32_t>(program.tasks.size()))];
      Buffer& buffer = program.buffers[random(static_cast<std::uint32_t>(program.buffers.size()))];
      const auto one_of = [&](auto& items) -> auto& {
        return items[random(static_cast<std::uint32_t>(items.size()))];
      };
      Bucket& bucket = one_of(made.plan.buckets);
      Chunk& chunk = one_of(made.plan.chunks);
      switch (random(24)) {
        case 0:
          task.op = static_cast<Op>(random(22));
          break;
        case 1:
          task.chunk = ChunkId{value};
          break;
        case 2:
          task.microbatch = value;
          break;
        case 3:
          task.value = ValueId{value};
          break;
        case 4:
          task.bucket = BucketId{value};
          break;
        case 5:
          task.communicator = CommId{value};
          break;
        case 6:
          task.peer = NodeId{value};
          break;
        case 7:
          task.node = NodeId{value};
          break;
        case 8:
          task.waits = {value, random(5)};
          break;
        case 9:
          task.reads = {random(40), value};
          break;
        case 10:
          task.writes.count = value;
          break;
        case 11:
          buffer.kind = static_cast<Buffer::Kind>(random(15));
          break;
        case 12:
          buffer.alloc = TaskId{value};
          break;
        case 13:
          buffer.free = TaskId{value};
          break;
        case 14:
          program.waits[random(4)].task = TaskId{value};
          break;
        case 15:
          buffer.microbatch = value;
          break;
        case 16:
          bucket.zero = value;
          break;
        case 17:
          bucket.shards = value;
          break;
        case 18:
          (random(2) == 0 ? bucket.expert_parts : chunk.expert_parts) = value;
          break;
        case 19:
          chunk.microbatches.push_back(value);
          break;
        case 20:
          chunk.experts = !chunk.experts;
          break;
        case 21:
          one_of(made.plan.communicators).group_size = value;
          break;
        case 22:
          one_of(made.plan.communicators).ranks.push_back(value);
          break;
        default:
          program.streams[random(2)].tasks.count = value;
          break;
      }
    }
    refused += verify(made.plan, made.model) ? 0 : 1;
  }
  EXPECT_GT(refused, 5000u);
}

TEST(Documentation, ShowsTheRealMessageOfEachRule) {
  std::ifstream file(std::string(PIPER_SOURCE_DIR) + "/docs/verifier.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (const BrokenPlan& broken : broken_plans()) {
    if (broken.is_documented) {
      EXPECT_NE(text.str().find("## " + broken.code + "\n"), std::string::npos)
          << "no section for " << broken.code;
      EXPECT_NE(text.str().find("\n```text\n" + refusal(broken) + "```\n"), std::string::npos)
          << "expected the message of '" << broken.name << "':\n"
          << refusal(broken);
    }
  }
}

}  // namespace
}  // namespace piper
