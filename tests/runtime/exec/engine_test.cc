#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "core/pipeline.h"
#include "runtime/exec/create_engine.h"
#include "runtime/tasks/update_gate.h"
#include "tests/runtime/exec/running.h"
#include "tests/support/live_toy.h"

namespace piper {
namespace {

using test::OneDevice;
using test::Running;
using test::ToyJob;

struct Case {
  ToyJob job;
  std::string name;
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const std::uint32_t pp : {1u, 2u, 4u}) {
    for (const std::uint32_t dp : {1u, 2u}) {
      for (const std::uint32_t m : {1u, 3u, 8u}) {
        for (const bool tied : {false, true}) {
          for (const bool split : {false, true}) {
            ToyJob job{pp, dp, m, {}, DType::float64, split};
            job.shape.tied = tied;
            result.push_back({job, "pp" + std::to_string(pp) + "dp" + std::to_string(dp) + "m" +
                                       std::to_string(m) + (tied ? "tied" : "") +
                                       (split ? "split" : "")});
          }
        }
      }
    }
  }
  for (const std::uint32_t pp : {1u, 2u}) {
    ToyJob job{pp, 2, 3, {}, DType::float64, false};
    job.shape.frozen_embedding = true;
    result.push_back({job, "pp" + std::to_string(pp) + "frozen"});
  }
  return result;
}

class Plans : public testing::TestWithParam<Case> {};

TEST_P(Plans, ComputeTheStepOfOneDevice) {
  Running run(GetParam().job);
  test::expect_one_devices_steps(run, 2);
}

INSTANTIATE_TEST_SUITE_P(Engine, Plans, testing::ValuesIn(cases()),
                         [](const auto& given) { return given.param.name; });

// Stages that give back what they received, as a view: the places of the received values and
// gradients are used again while the views are still on their way. Their weights are not used.
TEST(Engine, PassesViewsOfReceivedValuesOn) {
  const auto edit = [](LiveModel& live) {
    for (const std::size_t layer : {2, 3}) {
      live.regions[layer] = [](const Tensors& in) { return Tensors{in[0].view(in[0].sizes())}; };
    }
  };
  for (const bool split : {false, true}) {
    Running run({4, 1, 8, {}, DType::float64, split}, {}, edit);
    edit(run.model);
    run.engine->keep_gradients(true);

    for (int step = 1; step <= 3; ++step) {
      const OneDevice one = test::one_device(run.model, run.parameters(), run.batch);
      const Expected<StepResult> evaluated = run.evaluate();
      const Expected<StepResult> result = run.train(step);

      ASSERT_TRUE(evaluated && result);
      EXPECT_NEAR(evaluated->loss, one.loss, 1e-12 * one.loss);
      for (std::uint32_t i = 0; i < one.gradients.size(); ++i) {
        const ParameterId id{i};
        EXPECT_LT(
            test::relative_error(run.engine->gradient(run.homes(id)[0], id), one.gradients[i]),
            1e-12);
      }
    }
  }
}

TEST(Engine, GivesTheSameBitsInEveryRun) {
  std::vector<std::vector<at::Tensor>> after;
  std::vector<double> losses;
  for (int repeat = 0; repeat < 3; ++repeat) {
    Running run({2, 2, 3, {}, DType::float32});
    for (int step = 1; step <= 3; ++step) {
      losses.push_back(run.train(step)->loss);
    }
    after.push_back(run.parameters());
  }

  for (int repeat = 1; repeat < 3; ++repeat) {
    for (std::size_t i = 0; i < after[0].size(); ++i) {
      EXPECT_TRUE(at::equal(after[0][i], after[repeat][i]));
    }
    for (int step = 0; step < 3; ++step) {
      EXPECT_EQ(losses[step], losses[3 * repeat + step]);
    }
  }
}

TEST(Engine, ScalesLocalGradientsWhereATestAsksForIt) {
  Running run({2, 2, 3});
  const OneDevice one = test::one_device(run.model, run.start, run.batch);
  run.engine->keep_gradients(true);
  *run.gradient_scale = 3;

  ASSERT_TRUE(run.train());

  const ParameterId id{0};
  EXPECT_LT(test::relative_error(run.engine->gradient(run.homes(id)[0], id), 3 * one.gradients[0]),
            1e-12);
}

TEST(Engine, ClipsByTheGlobalNorm) {
  Running run({2, 2, 3}, [](Job& job) { job.config.training.max_norm = 0.01; });
  const OneDevice one = test::one_device(run.model, run.start, run.batch);
  ASSERT_GT(one.norm, 0.01);

  const Expected<StepResult> result = run.train();

  EXPECT_NEAR(result->grad_norm, one.norm, 1e-12);
  const std::vector<at::Tensor> after = run.parameters();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const at::Tensor expected = run.start[i] - 0.1 * (0.01 / (one.norm + 1e-6)) * one.gradients[i];
    EXPECT_LT(test::relative_error(after[i], expected), 1e-12);
  }
}

TEST(Engine, MultipliesTheLearningRateByTheFactorOfTheStep) {
  Running run({1, 1, 1});
  const OneDevice one = test::one_device(run.model, run.start, run.batch);

  StepInput input = test::feed(run.job.plans.train, run.batch);
  input.lr_factor = 0.5;
  ASSERT_TRUE(run.engine->train_step(input));

  EXPECT_LT(test::relative_error(run.parameters()[1], run.start[1] - 0.05 * one.gradients[1]),
            1e-12);
}

TEST(Engine, KeepsMasterValuesOfBfloat16Parameters) {
  Running run({2, 1, 2, {}, DType::bfloat16});
  const ParameterId id{1};
  const std::uint32_t home = run.homes(id)[0];
  const at::Tensor before = run.engine->master(home, id).clone();

  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(run.train(step));
  }

  const at::Tensor master = run.engine->master(home, id), value = run.engine->parameter(home, id);
  EXPECT_EQ(master.scalar_type(), at::kFloat);
  EXPECT_EQ(value.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(master.to(at::kBFloat16), value));
  EXPECT_FALSE(at::equal(master, value.to(at::kFloat))) << "masters carry more than the parameter";
  EXPECT_FALSE(at::equal(master, before));
}

// A model of one bfloat16 weight whose gradient in each micro-batch is what the batch says.
struct Sum {
  static LiveModel model() {
    LiveModel live;
    ModelGraph& graph = live.graph;
    graph.name = "sum";
    graph.parameters.push_back({"w", DType::bfloat16, {1}, false, {}});
    graph.values.push_back({"x", DType::bfloat16, {{1, 0}}, none<RegionId>()});
    graph.values.push_back({"labels", DType::int64, {{1, 0}}, none<RegionId>()});
    graph.values.push_back({"", DType::bfloat16, {}, RegionId{0}});
    graph.labels = ValueId{1};
    graph.loss = ValueId{2};
    graph.regions.push_back(
        {{}, {ParameterId{0}}, {ValueId{0}, ValueId{1}}, {ValueId{2}}, {}, {}, {}, {}});
    live.parameters.push_back(std::make_shared<at::Tensor>());
    live.inits.push_back(Init::constant(1));
    const ParameterHandle w(live.parameters[0]);
    live.regions.push_back([w](const Tensors& in) { return Tensors{(*w * in[0]).sum()}; });
    return live;
  }

  // The reduced gradient of `parts` over dp ranks, one value a micro-batch and rank.
  static double gradient(std::uint32_t dp, const std::vector<double>& parts,
                         const ReplicateDirective& policy = {});
};

double Sum::gradient(std::uint32_t dp, const std::vector<double>& parts,
                     const ReplicateDirective& policy) {
  const auto rows = static_cast<std::int64_t>(parts.size());
  Job job;
  job.config = test::toy_config(1, dp, static_cast<std::uint32_t>(rows) / dp);
  job.config.training.global_batch_size = rows;
  job.config.optimizer.name = OptimizerName::sgd;
  job.model = model().graph;
  Proposal proposal{{"toy", {}}, {}, {}};
  proposal.directives.push_back({policy, proposal.from});
  auto plans = plan(job.config, job.model, {proposal});
  EXPECT_TRUE(plans) << to_string(plans.error());
  job.plans = *plans;
  const auto scale = std::make_shared<double>(static_cast<double>(rows));
  auto engine = create_engine(job, [&]() -> Expected<LiveModel> {
    LiveModel live = model();
    scale_gradients(live, scale);  // undoes the mean over labels
    return live;
  });
  EXPECT_TRUE(engine) << to_string(engine.error());
  (*engine)->keep_gradients(true);
  const Batch batch{{ValueId{0}, at::tensor(parts, at::kDouble).to(at::kBFloat16)},
                    {ValueId{1}, at::zeros({rows}, at::kLong)}};
  const auto result = (*engine)->train_step(test::feed(job.plans.train, batch));
  EXPECT_TRUE(result) << to_string(result.error());
  return (*engine)->gradient(0, ParameterId{0}).item<double>();
}

// A bfloat16 holds no 257: this and the two tests after it would stop at 256.
TEST(Engine, AccumulatesBfloat16GradientsInFloat32) {
  EXPECT_EQ(Sum::gradient(1, {256, 1}), 257);
  EXPECT_EQ(Sum::gradient(1, std::vector<double>(512, 1.0)), 512);
}

TEST(Engine, ReducesBfloat16GradientsInFloat32) {
  EXPECT_EQ(Sum::gradient(2, {256, 1}), 257);
  EXPECT_EQ(Sum::gradient(2, {256, 1, 1, 1}), 259);  // a rank gives 257, which bfloat16 has not
  EXPECT_EQ(Sum::gradient(2, std::vector<double>(512, 1.0)), 512);
}

// Two values a rank: one is added to the other in the full gradient, or, where the weight's chains
// are cut, in the rank's part of it.
TEST(Engine, AccumulatesAndReducesShardedBfloat16GradientsInFloat32) {
  for (const int stage : {1, 2, 3}) {
    for (const Span reduce : {Span::chain, Span::step}) {
      ReplicateDirective policy;
      policy.shard_optimizer = true;
      policy.shard_grads = stage >= 2;
      policy.shard_params = stage >= 3;
      policy.reduce = reduce;
      EXPECT_EQ(Sum::gradient(1, {256, 1}, policy), 257);
      EXPECT_EQ(Sum::gradient(2, {256, 1}, policy), 257);
      EXPECT_EQ(Sum::gradient(2, {256, 1, 1, 1}, policy), 259);
      EXPECT_EQ(Sum::gradient(2, std::vector<double>(512, 1.0), policy), 512);
    }
  }
}

TEST(Engine, MakesNoUpdateFromGradientsThatAreNotFinite) {
  for (const double poison : {std::nan(""), static_cast<double>(INFINITY)}) {
    Running run({2, 2, 3}, [](Job& job) {
      job.config.optimizer.name = OptimizerName::adamw;
      job.config.optimizer.weight_decay = 0.1;
    });
    ASSERT_TRUE(run.train(1));
    const std::vector<at::Tensor> before = run.parameters();

    *run.gradient_scale = poison;
    const Expected<StepResult> bad = run.train(2);
    const std::vector<at::Tensor> after = run.parameters();
    *run.gradient_scale = 1;
    const Expected<StepResult> good = run.train(2);

    ASSERT_TRUE(bad);
    EXPECT_FALSE(bad->finite);
    EXPECT_FALSE(std::isfinite(bad->grad_norm));
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::equal(before[i], after[i]));
    }
    EXPECT_TRUE(good->finite) << "nothing of the bad gradient is left";
  }
}

TEST(Engine, RefusesABatchOfOtherRows) {
  Running run({1, 1, 2});
  for (auto& [id, tensor] : run.batch) {
    tensor = at::cat({tensor, tensor});
  }
  StepInput input;
  input.step = 1;
  input.batch = [&](std::uint32_t) { return run.batch; };

  const Expected<StepResult> result = run.engine->train_step(input);

  ASSERT_FALSE(result);
  EXPECT_EQ(to_string(result.error()),
            "error: rank 0 failed in input (stream input): expected 3 rows of input 'tokens', got "
            "[6, 4] [run.batch]");
}

TEST(Engine, IsWholeAfterAFailureBeforeTheFirstUpdate) {
  bool fails = false;
  Running run({2, 2, 3}, {}, [&](LiveModel& live) {
    const RegionFunction real = live.regions.back();
    live.regions.back() = [&fails, real](const Tensors& in) {
      return fails ? throw std::runtime_error("boom") : real(in);
    };
  });
  ASSERT_TRUE(run.train(1));
  EXPECT_TRUE(run.engine->is_whole());
  ASSERT_TRUE(run.train(2)) << "the question between steps closes nothing";
  const std::vector<at::Tensor> before = run.parameters();

  fails = true;
  const Expected<StepResult> failed = run.train(3);

  ASSERT_FALSE(failed);
  EXPECT_TRUE(run.engine->is_whole());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(run.parameters()[i], before[i]));
  }
}

TEST(Engine, IsNotWholeOnceAnUpdateHadBegun) {
  for (const bool throws : {true, false}) {
    std::atomic<int> updates{0};
    std::function<void()> on_second;
    const test::Wrap wrap = [&](std::uint32_t, const Task& task, std::unique_ptr<TaskBody> body) {
      if (task.op != Op::update) {
        return body;
      }
      const auto count = [&](const Launch&) { ++updates == 2 ? on_second() : void(); };
      return std::unique_ptr<TaskBody>(
          std::make_unique<test::WrappedTask>(std::move(body), test::WrappedTask::Hook{}, count));
    };
    on_second = [] {};
    Running run({2, 2, 3}, {}, {}, wrap);
    ASSERT_TRUE(run.train(1));
    updates = 0;
    on_second = [&] {
      run.engine->cancel("interrupted");
      if (throws) {
        throw std::runtime_error("boom");
      }
    };

    const Expected<StepResult> failed = run.train(2);

    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error()[0].code, "run.cancelled");
    EXPECT_FALSE(run.engine->is_whole());
  }
}

TEST(UpdateGate, OnceClosedNothingPasses) {
  UpdateGate gate;
  gate.pass();
  gate.next_step();
  EXPECT_TRUE(gate.close());

  EXPECT_THROW(gate.pass(), Cancelled);
  EXPECT_TRUE(gate.close()) << "what was refused has not passed";
  gate.next_step();
  EXPECT_THROW(gate.pass(), Cancelled);
}

TEST(UpdateGate, KnowsWhatHadPassed) {
  UpdateGate gate;
  gate.pass();

  EXPECT_FALSE(gate.close());
  EXPECT_FALSE(gate.close());
}

TEST(Engine, EndsAllRanksWithTheMessageOfTheRegionThatThrew) {
  int calls = 0;
  Running run({2, 2, 3}, {}, [&](LiveModel& live) {
    // Rank 3's second stage, in its second micro-batch.
    const bool mine = calls++ == 3;
    const RegionFunction real = live.regions.back();
    auto count = std::make_shared<int>(0);
    live.regions.back() = [=](const Tensors& in) {
      if (mine && ++*count == 2) {
        return Tensors{in[0].view({7, 11})};
      }
      return real(in);
    };
  });

  const auto begin = std::chrono::steady_clock::now();
  const Expected<StepResult> result = run.train();
  const auto took = std::chrono::steady_clock::now() - begin;

  ASSERT_FALSE(result);
  const std::string text = to_string(result.error());
  EXPECT_EQ(text.find("error: rank 3 failed in forward of stage 1, micro-batch 1 (stream compute): "
                      "shape '[7, 11]' is invalid for input of size"),
            0u)
      << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << "no stack of LibTorch's";
  EXPECT_LT(took, std::chrono::seconds(1));
  EXPECT_FALSE(run.train(2)) << "the engine is unusable after a failure";
}

TEST(Engine, EndsAStepSoonWhenItIsCancelled) {
  Running run({2, 1, 3}, {}, [](LiveModel& live) {
    const RegionFunction real = live.regions.front();
    live.regions.front() = [real](const Tensors& in) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return real(in);
    };
  });

  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    run.engine->cancel("interrupted");
  });
  const Expected<StepResult> result = run.train();
  canceller.join();

  ASSERT_FALSE(result);
  EXPECT_EQ(to_string(result.error()), "error: interrupted [run.cancelled]");
}

TEST(Engine, NamesTheStuckTaskAfterTheTimeout) {
  auto go = std::make_shared<std::atomic<bool>>(false);
  Running run(
      {2, 1, 2}, [](Job& job) { job.config.comm.train_timeout_seconds = 0.4; },
      [&](LiveModel& live) {
        const RegionFunction real = live.regions.back();
        live.regions.back() = [real, go](const Tensors& in) {
          for (int i = 0; i < 600 && !*go; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          return real(in);
        };
      });

  const Expected<StepResult> result = run.train();
  *go = true;

  ASSERT_FALSE(result);
  const std::string text = to_string(result.error());
  EXPECT_EQ(result.error()[0].code, "run.stuck");
  EXPECT_NE(text.find("forward of stage 1, micro-batch 0 on stream compute of rank 1 has not "
                      "returned"),
            std::string::npos)
      << text;
}

TEST(Engine, SetsAParameterOnEveryHome) {
  Running run({2, 2, 1, {.layers = 4, .tied = true}, DType::bfloat16});
  const ParameterId id{0};
  const at::Tensor value = at::rand(run.job.model.parameter(id).shape);

  run.engine->set_parameter(id, value);

  EXPECT_EQ(run.homes(id).size(), 4u);
  for (const std::uint32_t rank : run.homes(id)) {
    EXPECT_TRUE(at::equal(run.engine->parameter(rank, id), value.to(at::kBFloat16)));
    EXPECT_TRUE(at::equal(run.engine->master(rank, id), value));
  }
}

TEST(Engine, CountsThePeakOfEachRankAlikeInEveryRun) {
  std::vector<std::int64_t> first;
  for (int repeat = 0; repeat < 3; ++repeat) {
    Running run({1, 2, 3, {}, DType::float32});
    ASSERT_TRUE(run.train(1));
    const std::vector<std::int64_t> peaks = run.train(2)->peak_bytes;

    ASSERT_EQ(peaks.size(), 2u);
    EXPECT_GT(peaks[0], 2 * 4 * (2 * 16 * 8 + 4 * 8 * 8)) << "parameters and gradients";
    if (repeat == 0) {
      first = peaks;
    }
    EXPECT_EQ(peaks, first);
  }
}

int threads_of_this_process() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

TEST(Engine, MakesNoThreadInAStepAndLeavesNoneBehind) {
  const int before = threads_of_this_process();
  {
    Running run({2, 2, 3});
    ASSERT_TRUE(run.train(1));
    const int running = threads_of_this_process();
    for (int step = 2; step < 6; ++step) {
      ASSERT_TRUE(run.train(step));
    }
    EXPECT_EQ(threads_of_this_process(), running);
    EXPECT_GT(running, before);
  }
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST(Engine, RefusesATaskThatItDoesNotKnow) {
  auto job = test::toy_job({1, 1, 1});
  ASSERT_TRUE(job);
  job->plans.train.programs[0].tasks.back().op = Op::all_to_all;

  const auto engine = create_engine(
      *job, []() -> Expected<LiveModel> { return test::live_toy({}, DType::float64); });

  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error()[0].code, "run.plan");
}

TEST(Engine, RefusesAModelThatIsNotTheCapturedOne) {
  const auto job = test::toy_job({1, 1, 1});
  ASSERT_TRUE(job);

  const auto engine = create_engine(
      *job, []() -> Expected<LiveModel> { return test::live_toy({.layers = 5}, DType::float64); });

  ASSERT_FALSE(engine);
  EXPECT_EQ(to_string(engine.error()),
            "error: model 'toy' is not the one that was captured: capture it again [run.model]");
}

}  // namespace
}  // namespace piper
