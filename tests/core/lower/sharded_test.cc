// Plans that shard what is replicated, partition experts, go both ways and overlap: proven, for
// training and for evaluation, and with exactly the communication that their chains ask for.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/pipeline.h"
#include "core/verify/memory.h"
#include "tests/support/sharded_toy.h"
#include "tests/support/symbolic_run.h"

namespace piper {
namespace {

using test::sharded_job;
using test::ShardedShape;

// Plans it; it computes what one device does, and its text is read back exactly.
Expected<Plans> planned(const ShardedShape& shape) {
  const test::ShardedJob job = sharded_job(shape);
  PIPER_ASSIGN(Plans plans, test::plan(job));
  for (const Plan* plan : {&plans.train, &plans.evaluate}) {
    EXPECT_EQ(test::run_symbolically(*plan, job.model, 0).fault, "") << to_string(shape);
    const Expected<Plan> read = parse_plan(print(*plan, job.model), job.model, "p.plan");
    EXPECT_TRUE(read) << to_string(shape) << (read ? "" : to_string(read.error()));
    // (The lists of accesses are laid out in another order; their text is the same.)
    if (read) {
      EXPECT_TRUE(read->chunks == plan->chunks) << to_string(shape);
      EXPECT_TRUE(read->buckets == plan->buckets) << to_string(shape);
      EXPECT_TRUE(read->communicators == plan->communicators) << to_string(shape);
      for (std::size_t p = 0; p < plan->programs.size(); ++p) {
        EXPECT_TRUE(read->programs[p].buffers == plan->programs[p].buffers) << to_string(shape);
      }
    }
  }
  return plans;
}

void expect_planned(const ShardedShape& shape) {
  const Expected<Plans> plans = planned(shape);
  EXPECT_TRUE(plans) << to_string(shape) << (plans ? "" : to_string(plans.error()));
}

// How many tasks with this op each bucket of a program has, in the order of buckets.
std::vector<std::size_t> counts(const Plan& plan, std::uint32_t program, Op op) {
  std::vector<std::size_t> found;
  for (const BucketId bucket : plan.programs[program].buckets) {
    const std::vector<Task>& tasks = plan.programs[program].tasks;
    found.push_back(
        static_cast<std::size_t>(std::count_if(tasks.begin(), tasks.end(), [&](const Task& t) {
          return t.op == op && t.bucket == bucket;
        })));
  }
  return found;
}

using Counts = std::vector<std::size_t>;

TEST(Zero, IsProvenForEveryShapeStageAndSpan) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    for (const std::uint32_t pp : {1U, 2U, 3U}) {
      for (const std::uint32_t dp : {1U, 2U, 4U}) {
        for (const std::uint32_t m : {1U, 2U, 5U}) {
          for (std::uint32_t flags = 0; flags < 32; ++flags) {
            ShardedShape shape{.pp = pp, .dp = dp, .microbatches = m, .zero = zero};
            shape.bucket_bytes = (flags & 1U) != 0 ? 600 : 0;
            shape.keep_gathered = (flags & 2U) != 0 ? Span::step : Span::chain;
            shape.reduce = (flags & 4U) != 0 ? Span::step : Span::chain;
            shape.tied = (flags & 8U) != 0;
            shape.split_backward = (flags & 16U) != 0;
            expect_planned(shape);
          }
        }
      }
    }
  }
}

TEST(Zero, IsProvenForEveryPrefetch) {
  for (const std::uint32_t prefetch : {0U, 1U, 2U, 9U}) {
    for (const Span span : {Span::chain, Span::step}) {
      for (const bool tied : {false, true}) {
        ShardedShape shape{.prefetch = prefetch, .tied = tied};
        shape.keep_gathered = span;
        expect_planned(shape);
      }
    }
  }
}

TEST(Zero, ReducesEachGradientChainOnceAndGathersEachParameterChainOnce) {
  for (const std::size_t m : {std::size_t{4}, std::size_t{16}}) {
    ShardedShape shape{.microbatches = static_cast<std::uint32_t>(m), .zero = 2};

    Expected<Plans> plans = planned(shape);
    ASSERT_TRUE(plans) << to_string(plans.error());
    EXPECT_EQ(counts(plans->train, 1, Op::reduce_scatter), (Counts{m, m, m}));
    EXPECT_EQ(counts(plans->train, 1, Op::all_gather), (Counts{1, 1, 1}));
    EXPECT_EQ(counts(plans->train, 1, Op::all_reduce), (Counts{0, 0, 0}));

    // The last stage runs F0 B0 F1 B1 ..., pieces forwards in F and backwards in B: the last
    // piece's F and B are one chain, the first piece's B and the next F are.
    shape.zero = 3;
    plans = planned(shape);
    ASSERT_TRUE(plans) << to_string(plans.error());
    EXPECT_EQ(counts(plans->train, 1, Op::reduce_scatter), (Counts{m, m, m}));
    EXPECT_EQ(counts(plans->train, 1, Op::all_gather), (Counts{m + 1, 2 * m, m}));
    EXPECT_EQ(counts(plans->evaluate, 1, Op::all_gather), (Counts{m, m, m}));
    EXPECT_EQ(counts(plans->evaluate, 1, Op::reduce_scatter), (Counts{0, 0, 0}));
  }
}

TEST(Zero, ReducesALoneBucketOnceForConsecutiveBackwards) {
  const Expected<Plans> plans = planned({.microbatches = 4, .zero = 3, .bucket_bytes = 0});

  ASSERT_TRUE(plans) << to_string(plans.error());
  EXPECT_EQ(counts(plans->train, 1, Op::reduce_scatter), Counts{1});
  EXPECT_EQ(counts(plans->train, 1, Op::all_gather), Counts{1});
}

TEST(Zero, ReducesAndGathersOnceAStepWhereThatIsAsked) {
  const Expected<Plans> plans =
      planned({.microbatches = 4, .zero = 3, .keep_gathered = Span::step, .reduce = Span::step});

  ASSERT_TRUE(plans) << to_string(plans.error());
  EXPECT_EQ(counts(plans->train, 1, Op::reduce_scatter), (Counts{1, 1, 1}));
  EXPECT_EQ(counts(plans->train, 1, Op::all_gather), (Counts{1, 1, 1}));
}

TEST(Zero, ReducesOnceAStepInStageOne) {
  const Expected<Plans> plans = planned({.microbatches = 4, .zero = 1});

  ASSERT_TRUE(plans) << to_string(plans.error());
  EXPECT_EQ(counts(plans->train, 0, Op::reduce_scatter), (Counts{1, 1, 1}));
  EXPECT_EQ(counts(plans->train, 0, Op::all_gather), (Counts{1, 1, 1}));
}

TEST(Zero, ShardsNothingWhereOneRankHoldsAll) {
  const Expected<Plans> plans = planned({.dp = 1, .zero = 3});

  ASSERT_TRUE(plans) << to_string(plans.error());
  EXPECT_EQ(counts(plans->train, 0, Op::all_gather), (Counts{0, 0, 0}));
  EXPECT_EQ(plans->train.buckets[0].zero, 0U);
}

// The bytes of buffers of some kinds that are live at most, as if there were no arena.
std::int64_t peak_of(Plan plan, const ModelGraph& model, std::uint32_t p,
                     const std::set<Buffer::Kind>& kinds) {
  Program& program = plan.programs[p];
  program.arena_bytes = 0;
  for (Buffer& buffer : program.buffers) {
    buffer.offset = Buffer::kNoOffset;
    if (!kinds.contains(buffer.kind)) {
      buffer.bytes = {};
    }
  }
  return peak_bytes(plan, model, p, 0);
}

TEST(Zero, KeepsAsMuchGatheredAndUnreducedForMoreMicrobatches) {
  for (const std::uint32_t zero : {2U, 3U}) {
    for (const Buffer::Kind kind : {Buffer::Kind::gathered, Buffer::Kind::full_gradient}) {
      std::set<std::int64_t> peaks;
      for (const std::uint32_t m : {4U, 16U}) {
        const test::ShardedJob job = sharded_job({.microbatches = m, .zero = zero});
        const Expected<Plans> plans = test::plan(job);
        ASSERT_TRUE(plans) << to_string(plans.error());
        peaks.insert(peak_of(plans->train, job.model, 1, {kind}));
      }
      EXPECT_EQ(peaks.size(), 1U) << "ZeRO " << zero << ": " << *peaks.begin() << " and "
                                  << *peaks.rbegin() << " bytes";
    }
  }
}

TEST(Zero, NeedsLessMemoryForModelStateForEachStage) {
  using Kind = Buffer::Kind;
  std::int64_t before = 0;
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
    const test::ShardedJob job =
        sharded_job({.pp = 1, .dp = 4, .microbatches = 4, .zero = zero, .layers = 12});
    const Expected<Plans> plans = test::plan(job);
    ASSERT_TRUE(plans) << to_string(plans.error());
    const std::int64_t peak = peak_of(plans->train, job.model, 0,
                                      {Kind::parameter, Kind::parameter_gradient, Kind::optimizer,
                                       Kind::gathered, Kind::full_gradient});
    EXPECT_TRUE(zero == 0 || peak < before)
        << "ZeRO " << zero << ": " << peak << " bytes, one less " << before;
    before = peak;
  }
}

TEST(Hybrid, ReducesTheShardsOverTheOtherGroupsOnceAStep) {
  const Expected<Plans> plans = planned({.pp = 1, .dp = 4, .zero = 3, .hybrid = 2});

  ASSERT_TRUE(plans) << to_string(plans.error());
  const Plan& train = plans->train;
  for (const Task& task : train.programs[0].tasks) {
    if (task.op == Op::all_reduce) {
      const Communicator& communicator = train.communicators[index(task.communicator)];
      EXPECT_EQ(communicator.ranks, (std::vector<std::uint32_t>{0, 2, 1, 3}));
      EXPECT_EQ(communicator.group_size, 2U);
    } else if (task.op == Op::reduce_scatter) {
      const Communicator& communicator = train.communicators[index(task.communicator)];
      EXPECT_EQ(communicator.ranks, (std::vector<std::uint32_t>{0, 1, 2, 3}));
      EXPECT_EQ(communicator.group_size, 2U);
    }
  }
  EXPECT_EQ(counts(train, 0, Op::all_reduce), Counts(6, 1));
}

TEST(Hybrid, IsProvenForEveryStage) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    for (const std::uint32_t pp : {1U, 2U}) {
      for (const bool tied : {false, true}) {
        expect_planned({.pp = pp, .dp = 4, .zero = zero, .hybrid = 2, .tied = tied});
      }
    }
  }
}

TEST(Experts, AreProvenForEveryStageAndOrder) {
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
    for (std::uint32_t flags = 0; flags < 32; ++flags) {
      ShardedShape shape{.pp = 1 + (flags & 1U), .dp = 4, .zero = zero, .ep = 2};
      shape.bucket_bytes = (flags & 2U) != 0 ? 1 : 0;
      shape.split_backward = (flags & 4U) != 0;
      shape.overlap = (flags & 8U) != 0;
      if ((flags & 16U) != 0 && shape.pp == 1) {
        shape.expert_layers = {1, 2};  // one after the other
        shape.ep = 4;
      }
      expect_planned(shape);
    }
  }
}

TEST(Experts, AreRoutedFourTimesAMicrobatch) {
  const Expected<Plans> plans =
      planned({.pp = 1, .dp = 4, .zero = 0, .ep = 2, .expert_layers = {1}});

  ASSERT_TRUE(plans) << to_string(plans.error());
  const auto routes = [](const Plan& plan) {
    const std::vector<Task>& tasks = plan.programs[0].tasks;
    return std::count_if(tasks.begin(), tasks.end(),
                         [](const Task& t) { return t.op == Op::all_to_all; });
  };
  EXPECT_EQ(routes(plans->train), 4 * 3);
  EXPECT_EQ(routes(plans->evaluate), 2 * 3);
}

TEST(Experts, AreReducedOverTheRanksThatHoldTheSame) {
  const Expected<Plans> plans =
      planned({.pp = 1, .dp = 4, .zero = 0, .ep = 2, .expert_layers = {1}});

  ASSERT_TRUE(plans) << to_string(plans.error());
  const Plan& train = plans->train;
  std::size_t of_experts = 0;
  for (const Task& task : train.programs[0].tasks) {
    if (task.op == Op::all_reduce && train.buckets[index(task.bucket)].expert_parts == 2) {
      ++of_experts;
      EXPECT_EQ(train.communicators[index(task.communicator)].ranks,
                (std::vector<std::uint32_t>{0, 2, 1, 3}));
      EXPECT_EQ(train.communicators[index(task.communicator)].group_size, 2U);
    }
  }
  EXPECT_EQ(of_experts, 1U);
}

TEST(BothWays, IsProvenForEveryStageAndOrder) {
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
    for (const std::uint32_t pp : {2U, 4U}) {
      for (const std::uint32_t m : {2U, 4U, 6U}) {
        for (std::uint32_t flags = 0; flags < 32; ++flags) {
          ShardedShape shape{.pp = pp, .microbatches = m, .zero = zero, .bidirectional = true};
          shape.ordered = (flags & 1U) != 0;
          shape.overlap = (flags & 2U) != 0;
          shape.tied = (flags & 4U) != 0;
          shape.split_backward = (flags & 8U) != 0;
          shape.bucket_bytes = (flags & 16U) != 0 ? 1 : 0;
          if (shape.overlap && !shape.ordered) {
            continue;
          }
          expect_planned(shape);
        }
      }
    }
  }
}

TEST(BothWays, RunsEachMicrobatchOfAStageOnOnePlace) {
  const Expected<Plans> plans =
      planned({.microbatches = 4, .zero = 0, .bucket_bytes = 0, .bidirectional = true});

  ASSERT_TRUE(plans) << to_string(plans.error());
  ASSERT_EQ(plans->train.chunks.size(), 4U);
  EXPECT_EQ(plans->train.chunks[0].regions, plans->train.chunks[1].regions);
  EXPECT_EQ(plans->train.chunks[0].microbatches, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(plans->train.chunks[1].microbatches, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(plans->train.buckets[0].homes, (std::vector<std::uint32_t>{0, 1}));
}

TEST(Overlap, IsProvenForOneWay) {
  for (const std::uint32_t zero : {0U, 3U}) {
    for (const std::uint32_t pp : {2U, 3U}) {
      for (const bool split : {false, true}) {
        expect_planned(
            {.pp = pp, .microbatches = 6, .zero = zero, .split_backward = split, .overlap = true});
      }
    }
  }
}

}  // namespace
}  // namespace piper
