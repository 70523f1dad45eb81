// The memory of a computation, from that of its regions. All sizes are a multiple of the rows, so
// that one row shows them.
#include "core/plan/chunk_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace piper {
namespace {

// Three regions in a row: v2 (100) = embed(tokens); v3 (200) = f(v2), which keeps v2 and 40 more;
// the loss (4) of v3, which keeps v3 and 70 more.
const char* const kModel =
    "piper-model-graph 1\n"
    "name \"m\"\n"
    "parameter 0 \"a\" float32 [4]\n"
    "parameter 1 \"b\" float32 [4]\n"
    "value 0 \"tokens\" int64 [r, 4] input\n"
    "value 1 \"labels\" int64 [r, 4] input\n"
    "value 2 float32 [r, 25] from 0\n"
    "value 3 float32 [r, 50] from 1\n"
    "value 4 float32 [] from 2\n"
    "region 0 {} (%0) -> (%2) parameters (0) flops 0 saved 32r transient 0 keeps (%0) peaks "
    "evaluate (100r) forward (100r) backward (10r) input () weight (10r)\n"
    "region 1 {} (%2) -> (%3) parameters (1) flops 0 saved 140r transient 0 pending 300r keeps "
    "(%2) awaits (%2) gradients (%3) peaks evaluate (250r) forward (260r) backward (90r, "
    "20r+500) input (95r) weight (230r)\n"
    "region 2 {} (%3, %1) -> (%4) parameters () flops 0 saved 270r transient 0 pending 30r keeps "
    "(%3) peaks evaluate (74r) forward (80r) backward (150r) input (160r) weight (90r)\n"
    "loss %4\n"
    "labels %1\n";

class ChunkMemoryTest : public testing::Test {
 protected:
  ChunkMemoryTest() : model_(*parse_model_graph(kModel, "m")) {
    plan_.programs.push_back({});
    plan_.programs[0].ranks = {0};
  }

  void add_chunk(std::vector<std::uint32_t> regions, std::vector<std::uint32_t> inputs,
                 std::vector<std::uint32_t> outputs, bool has_loss = false) {
    Chunk chunk;
    for (const std::uint32_t region : regions) {
      chunk.regions.push_back(RegionId{region});
    }
    for (const std::uint32_t input : inputs) {
      chunk.inputs.push_back(ValueId{input});
    }
    for (const std::uint32_t output : outputs) {
      chunk.outputs.push_back(ValueId{output});
    }
    chunk.has_loss = has_loss;
    plan_.chunks.push_back(chunk);
  }
  void add_whole_model() { add_chunk({0, 1, 2}, {0, 1}, {}, /*has_loss=*/true); }

  // Of chunk 0 on `rows` rows, where `consumers` others send it gradients of its first output.
  TaskMemory of(Op op, std::int64_t rows = 1, std::uint32_t consumers = 0) {
    plan_.global_rows = rows;
    Program& program = plan_.programs[0];
    program.buffers.assign(consumers + 1, {});
    program.buffers[consumers].kind = Buffer::Kind::saved;
    program.access.clear();
    for (std::uint32_t i = 0; i < consumers; ++i) {
      program.buffers[i].kind = Buffer::Kind::gradient;
      program.buffers[i].value = plan_.chunks[0].outputs[0];
      program.access.push_back(BufferId{i});
    }
    Task task;
    task.op = op;
    task.chunk = ChunkId{0};
    task.reads = {0, consumers};
    program.access.push_back(BufferId{consumers});
    task.writes = {consumers, op == Op::forward && keeps_graph_ ? 1U : 0U};
    return ChunkMemory(plan_, model_).of(program, task, 0);
  }

  ModelGraph model_;
  Plan plan_;
  bool keeps_graph_ = true;
};

TEST_F(ChunkMemoryTest, KeepsAValueOnceAndNoneThatHasABuffer) {
  add_whole_model();
  add_chunk({1}, {2}, {3});

  EXPECT_EQ(saved_bytes(model_, plan_.chunks[0]), (Affine{40 + 70 + 100 + 200, 0}));
  EXPECT_EQ(saved_bytes(model_, plan_.chunks[1]), (Affine{40, 0}));
}

TEST_F(ChunkMemoryTest, OfAForwardIsWhatEarlierRegionsKeepAndTheRegionThatRuns) {
  add_whole_model();

  const TaskMemory memory = of(Op::forward);

  // While the loss runs: 40 of the region before, v2 and v3, and its own 80; 410 are kept.
  EXPECT_EQ(memory.running, 40 + 100 + 200 + 80 - 410);
  EXPECT_EQ(memory.after, 4) << "the loss";
}

TEST_F(ChunkMemoryTest, OfAForwardThatKeepsNothingIsWhatIsReadLaterAndTheRegionThatRuns) {
  add_whole_model();
  keeps_graph_ = false;

  const TaskMemory memory = of(Op::forward);

  EXPECT_EQ(memory.running, 100 + 250) << "v2, and what makes v3 of it";
  EXPECT_EQ(memory.after, 0);
}

TEST_F(ChunkMemoryTest, OfABackwardLosesWhatLaterRegionsKept) {
  add_whole_model();

  // With many rows the most is at the loss, with all that is kept before it: 40, v2, v3, and its
  // own 150. With one row it is at the region before: v2, the gradient of v3, and 20r + 500.
  EXPECT_EQ(of(Op::backward, 10).running, 10 * (40 + 100 + 200 + 150) - 4100);
  EXPECT_EQ(of(Op::backward, 1).running, 100 + 200 + 520 - 410);
  EXPECT_EQ(of(Op::backward).after, -4) << "the loss";
}

TEST_F(ChunkMemoryTest, OfABackwardIsTheLargestOfSeveralSizes) {
  add_chunk({1}, {2}, {3});

  // 20r + 500 with few rows, 90r with many; less what is kept, and the gradient that it makes.
  EXPECT_EQ(of(Op::backward, 1).running, 520 - 40 - 100);
  EXPECT_EQ(of(Op::backward, 10).running, 900 - 400 - 1000);
}

TEST_F(ChunkMemoryTest, OfABackwardHasTheSumOfSeveralGradients) {
  add_chunk({1}, {2}, {3});

  EXPECT_EQ(of(Op::backward, 1, 1).running, of(Op::backward, 1, 0).running);
  EXPECT_EQ(of(Op::backward, 1, 2).running, of(Op::backward, 1, 0).running + 200);
}

TEST_F(ChunkMemoryTest, OfEveryPassHasWhatKernelsTakeInside) {
  add_chunk({1}, {2}, {3});
  const std::int64_t forward_of_7 = of(Op::forward, 7).running;
  const std::int64_t forward = of(Op::forward, 10).running, backward = of(Op::backward, 10).running;
  model_.regions[1].workspace = {{1, {700, 0}}, {8, {0, 6000}}};

  const std::int64_t workspace = 6000;
  EXPECT_EQ(of(Op::forward, 7).running - forward_of_7, 4900);
  EXPECT_EQ(of(Op::forward, 10).running, forward + workspace);
  EXPECT_EQ(of(Op::backward, 10).running, backward + workspace);
  EXPECT_EQ(of(Op::backward_input, 10).running, 950 + workspace - 400 - 1000);
  EXPECT_EQ(of(Op::backward_weight, 10).running, 2300 + workspace - 2000);
  keeps_graph_ = false;
  EXPECT_EQ(of(Op::forward, 10).running, 2500 + workspace - 2000);
}

TEST_F(ChunkMemoryTest, OfTheFirstHalfHasARegionThatItGoesThroughForItsParameters) {
  add_chunk({0}, {0}, {2});
  EXPECT_EQ(of(Op::backward_input).running, 32 + 100 - 32) << "all is pending";
  Region& region = model_.regions[0];
  region.pending_bytes = {72, 0};
  region.pending_values = {ValueId{0}};
  region.peaks->backward_input.add({90, 0});

  const TaskMemory memory = of(Op::backward_input);

  EXPECT_EQ(memory.running, 90) << "tokens are the chunk's input";
  EXPECT_EQ(memory.after, 40);
}

TEST_F(ChunkMemoryTest, OfTheFirstHalfHasWhatIsPendingOfLaterRegions) {
  add_whole_model();

  const TaskMemory memory = of(Op::backward_input);

  EXPECT_EQ(memory.running, 40 + 100 + 200 + 160 - 410);
  // Pending: all of the embedding and the gradient of v2; 200 and v2 itself; 30. The loss goes.
  EXPECT_EQ(memory.after, (100 + 200 + 100 + 30) - 410 - 4);
}

TEST_F(ChunkMemoryTest, OfTheSecondHalfEndsWithNothing) {
  add_whole_model();

  const TaskMemory memory = of(Op::backward_weight);

  EXPECT_EQ(memory.running, 430 - 30 + 90 - 430) << "the loss region's";
  EXPECT_EQ(memory.after, 410 - 430) << "what is pending more than what was saved";
}

TEST_F(ChunkMemoryTest, IsEstimatedWhereTheModelDoesNotSay) {
  add_chunk({1}, {2}, {3});
  model_.regions[1].peaks.reset();
  model_.regions[1].transient_bytes = {7, 0};

  EXPECT_EQ(of(Op::forward).running, 7);
  EXPECT_EQ(of(Op::backward).running, 7);
}

TEST_F(ChunkMemoryTest, OfARecomputationIsThatOfAForwardWithoutBuffersForItsOutputs) {
  add_chunk({0, 1}, {0}, {2, 3});
  EXPECT_EQ(saved_bytes(model_, plan_.chunks[0]), (Affine{40, 0}));
  plan_.chunks[0].recompute = true;

  // The graph keeps v2 itself; v3 is there until the task ends.
  EXPECT_EQ(saved_bytes(model_, plan_.chunks[0]), (Affine{40 + 100, 0}));
  EXPECT_EQ(of(Op::recompute).running, 100 + 260 - 140);
}

TEST_F(ChunkMemoryTest, OfExpertsIsThatOfAllRowsOfTheirGroup) {
  add_chunk({1}, {2}, {3});
  const TaskMemory alone = of(Op::backward_input);
  plan_.chunks[0].expert_parts = 4;

  EXPECT_EQ(of(Op::backward_input).running, 4 * alone.running);
  EXPECT_EQ(of(Op::backward_input).after, 4 * alone.after);
}

TEST_F(ChunkMemoryTest, IsNothingForOtherTasks) {
  add_whole_model();

  EXPECT_EQ(of(Op::update).running, 0);
  EXPECT_EQ(of(Op::send).running, 0);
}

}  // namespace
}  // namespace piper
