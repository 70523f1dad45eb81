// Every plan of the corpus in time, however tasks share links and however pairs run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/simulate/analysis.h"
#include "tests/support/plan_corpus.h"

namespace piper {
namespace {

using test::CorpusJob;

// Durations of every size, none of them equal by rule; the same each time.
Durations uneven(const Plan& plan) {
  Durations durations;
  std::uint64_t state = 12345;
  std::map<std::uint32_t, std::uint64_t> of_pair;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> of_launch;
  for (const Program& program : plan.programs) {
    std::map<std::uint32_t, std::uint32_t> launched;
    durations.emplace_back();
    for (const Task& task : program.tasks) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      std::uint64_t ticks = (state >> 33) % 1000;
      if (is_point_to_point(task.op)) {  // both sides take as long
        ticks =
            of_pair.try_emplace(std::min(index(task.node), index(task.peer)), ticks).first->second;
      } else if (valid(task.communicator)) {
        const std::uint32_t comm = index(task.communicator);
        ticks = of_launch.try_emplace({comm, launched[comm]++}, ticks).first->second;
      }
      durations.back().push_back(ticks);
    }
  }
  return durations;
}

// Slow and obvious: raises starts until every rule holds.
std::vector<std::vector<std::uint64_t>> begins(const Plan& plan, const Durations& durations) {
  std::vector<std::vector<std::uint64_t>> begin;
  for (const Program& program : plan.programs) {
    begin.emplace_back(program.tasks.size(), 0);
  }
  for (bool changed = true; changed;) {
    changed = false;
    const auto raise = [&](std::uint64_t& value, std::uint64_t to) {
      changed = changed || to > value;
      value = std::max(value, to);
    };
    std::map<std::uint32_t, std::uint64_t> of_pair;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> of_launch;
    for (int turn = 0; turn < 2; ++turn) {  // tells the others, then hears from them
      for (std::size_t p = 0; p < plan.programs.size(); ++p) {
        const Program& program = plan.programs[p];
        std::map<std::uint32_t, std::uint32_t> launched;
        for (std::size_t t = 0; t < program.tasks.size(); ++t) {
          const Task& task = program.tasks[t];
          std::uint64_t& own = begin[p][t];
          if (t > program.streams[index(task.stream)].tasks.begin) {
            raise(own, begin[p][t - 1] + durations[p][t - 1]);
          }
          for (const Wait& wait : program.waits_of(task)) {
            if (!wait.previous) {
              raise(own, begin[p][index(wait.task)] + durations[p][index(wait.task)]);
            }
          }
          std::uint64_t* together =
              is_point_to_point(task.op) ? &of_pair[std::min(index(task.node), index(task.peer))]
              : valid(task.communicator)
                  ? &of_launch[{index(task.communicator), launched[index(task.communicator)]++}]
                  : nullptr;
          if (together != nullptr) {
            *together = std::max(*together, own);
            raise(own, *together);
          }
        }
      }
    }
  }
  return begin;
}

template <typename Visit>
void for_each_plan(Visit visit) {
  std::uint32_t seen = 0;
  for (const CorpusJob& job : test::plan_corpus()) {
    for (const Plan* const plan : {&job.plans.train, &job.plans.evaluate}) {
      visit(job, *plan);
      ++seen;
    }
  }
  EXPECT_GE(seen, 400U);
}

TEST(SimulatedCorpus, StartsEveryTaskAsSoonAsItsRulesAllow) {
  for_each_plan([](const CorpusJob& job, const Plan& plan) {
    const Durations durations = uneven(plan);

    const auto ran = simulate(plan, durations);

    ASSERT_TRUE(ran) << job.name;
    const auto expected = begins(plan, durations);
    for (std::size_t p = 0; p < plan.programs.size(); ++p) {
      for (std::size_t t = 0; t < plan.programs[p].tasks.size(); ++t) {
        ASSERT_EQ(ran->times[p][t].begin, expected[p][t]) << job.name << ", " << p << ", " << t;
        ASSERT_EQ(ran->times[p][t].end, expected[p][t] + durations[p][t]) << job.name;
      }
    }
  });
}

TEST(SimulatedCorpus, IsNeverFasterWithSharedLinks) {
  std::uint32_t slower = 0;
  for_each_plan([&](const CorpusJob& job, const Plan& plan) {
    const Durations durations = uneven(plan);

    const auto alone = simulate(plan, durations);
    const auto shared = simulate(plan, durations, {.contention = true});

    ASSERT_TRUE(alone && shared) << job.name;
    for (std::size_t p = 0; p < plan.programs.size(); ++p) {
      for (std::size_t t = 0; t < plan.programs[p].tasks.size(); ++t) {
        ASSERT_GE(shared->times[p][t].end, alone->times[p][t].end) << job.name;
        ASSERT_GE(shared->times[p][t].end - shared->times[p][t].begin, durations[p][t]);
      }
    }
    slower += shared->makespan > alone->makespan ? 1 : 0;
  });
  EXPECT_GT(slower, 50U) << "links that nothing shares show nothing";
}

// What holds of every run.
void expect_consistent(const CorpusJob& job, const Plan& plan, const Simulation& ran) {
  const Analysis found = analyse(plan, job.job.model, ran);
  const auto span = [&](const TaskOf& at) { return ran.times[at.program][index(at.task)]; };
  std::uint64_t time = 0;
  for (const TaskOf& at : found.critical_path) {
    ASSERT_EQ(span(at).begin, time) << "the critical path has a hole in " << job.name;
    ASSERT_GT(span(at).end, span(at).begin);
    time = span(at).end;
  }
  ASSERT_EQ(time, ran.makespan) << job.name;
  for (const ProgramReport& program : found.programs) {
    std::uint64_t idle = 0;
    for (const Gap& gap : program.gaps) {
      ASSERT_GT(gap.length(), 0U);
      ASSERT_LE(gap.exposed, gap.length()) << job.name;
      ASSERT_EQ(valid(gap.blame.task), valid(gap.next)) << job.name;
      idle += gap.length();
    }
    ASSERT_EQ(program.busy + idle, ran.makespan) << job.name;
    ASSERT_LE(program.peak_bytes, program.bound_bytes) << job.name;
    ASSERT_GT(program.peak_bytes, 0) << job.name;
  }
}

TEST(SimulatedCorpus, HasAWholeCriticalPathGapsThatAddUpAndBytesWithinTheBound) {
  std::uint32_t blocks = 0;
  for_each_plan([&](const CorpusJob& job, const Plan& plan) {
    const Durations durations = uneven(plan);
    for (const SimulateOptions options : {SimulateOptions{}, SimulateOptions{.contention = true},
                                          SimulateOptions{.atomic_pairs = true}}) {
      const auto ran = simulate(plan, durations, options);
      if (!ran && options.atomic_pairs) {
        ASSERT_EQ(ran.error().front().code, "simulate.pair") << job.name;
        continue;
      }
      ASSERT_TRUE(ran) << job.name;
      blocks += options.atomic_pairs ? 1 : 0;
      expect_consistent(job, plan, *ran);
    }
  });
  EXPECT_GT(blocks, 300U);
}

TEST(SimulatedCorpus, IsTheSameTwice) {
  for_each_plan([](const CorpusJob& job, const Plan& plan) {
    const Durations durations = uneven(plan);
    const auto one = simulate(plan, durations, {.contention = true});
    const auto two = simulate(plan, durations, {.contention = true});
    for (std::size_t p = 0; p < plan.programs.size(); ++p) {
      for (std::size_t t = 0; t < plan.programs[p].tasks.size(); ++t) {
        ASSERT_EQ(one->times[p][t].begin, two->times[p][t].begin) << job.name;
        ASSERT_EQ(one->causes[p][t].task, two->causes[p][t].task) << job.name;
      }
    }
  });
}

}  // namespace
}  // namespace piper
