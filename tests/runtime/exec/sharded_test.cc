// Plans that shard optimizer, gradients and parameters compute what one device does, whatever they
// are made of, and move as many bytes as they should.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/runtime/exec/running.h"
#include "tests/support/sharded_toy.h"

namespace piper {
namespace {

using test::OneDevice;
using test::Running;
using test::ShardedShape;

Job job_of(const ShardedShape& shape, DType dtype = DType::float64,
           const std::function<void(Config&)>& change = {}) {
  test::ShardedJob sharded = sharded_job(shape);
  sharded.model = test::toy_graph({.layers = shape.layers, .tied = shape.tied}, dtype);
  sharded.config.training.dtype = dtype;
  sharded.config.optimizer.name = OptimizerName::sgd;
  sharded.config.optimizer.lr = 0.1;
  if (change) {
    change(sharded.config);
  }
  auto plans = test::plan(sharded);
  EXPECT_TRUE(plans) << to_string(shape) << '\n' << to_string(plans.error());
  return {sharded.config, sharded.model, *plans};
}

Running running(const ShardedShape& shape, DType dtype = DType::float64,
                const std::function<void(Config&)>& change = {}) {
  return Running(job_of(shape, dtype, change), {.layers = shape.layers, .tied = shape.tied}, dtype);
}

void expect_one_devices_steps(const ShardedShape& shape) {
  SCOPED_TRACE(to_string(shape));
  Running run = running(shape);
  test::expect_one_devices_steps(run, 3);
}

TEST(Sharded, ComputesOneDevicesStepsInEveryStageAndSpan) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    for (const std::uint32_t pp : {1U, 2U}) {
      for (std::uint32_t flags = 0; flags < 16; ++flags) {
        ShardedShape shape{.pp = pp, .dp = 2, .microbatches = 3, .zero = zero};
        shape.bucket_bytes = (flags & 1U) != 0 ? 600 : 0;
        shape.keep_gathered = (flags & 2U) != 0 ? Span::step : Span::chain;
        shape.reduce = shape.keep_gathered;
        shape.tied = (flags & 4U) != 0;
        shape.split_backward = (flags & 8U) != 0;
        expect_one_devices_steps(shape);
      }
    }
  }
}

TEST(Sharded, ComputesOneDevicesStepsOverThreeRanksThatDivideNoBucket) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    expect_one_devices_steps({.pp = 1, .dp = 3, .zero = zero, .split_backward = true});
  }
}

TEST(Sharded, ComputesOneDevicesStepsForEveryPrefetch) {
  for (const std::uint32_t prefetch : {0U, 1U, 2U, 9U}) {
    expect_one_devices_steps({.microbatches = 4, .prefetch = prefetch, .tied = true});
  }
}

TEST(Sharded, ComputesOneDevicesStepsInGroupsOfAPlace) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    for (const bool tied : {false, true}) {
      expect_one_devices_steps(
          {.pp = tied ? 2U : 1U, .dp = 4, .zero = zero, .hybrid = 2, .tied = tied});
    }
  }
}

TEST(Sharded, ComputesOneDevicesStepsBothWays) {
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
    for (const bool tied : {false, true}) {
      expect_one_devices_steps({.pp = 2,
                                .microbatches = 4,
                                .zero = zero,
                                .tied = tied,
                                .split_backward = tied,
                                .bidirectional = true,
                                .overlap = !tied});
    }
  }
}

TEST(Sharded, KeepsMasterValuesOfItsPartOfBfloat16Parameters) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    Running run = running({.pp = 1, .zero = zero}, DType::bfloat16);
    for (int step = 1; step <= 3; ++step) {
      ASSERT_TRUE(run.train(step));
    }
    for (std::uint32_t i = 0; i < run.start.size(); ++i) {
      const ParameterId id{i};
      for (const std::uint32_t rank : run.homes(id)) {
        const at::Tensor master = run.engine->master(rank, id);
        EXPECT_EQ(master.scalar_type(), at::kFloat);
        EXPECT_TRUE(at::equal(master.to(at::kBFloat16), run.engine->parameter(rank, id)));
        EXPECT_FALSE(at::equal(master, run.engine->parameter(rank, id).to(at::kFloat)));
      }
    }
  }
}

TEST(Sharded, ClipsByTheNormOfTheWhole) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    const double max_norm = 0.05;
    Running run = running({.dp = 3, .zero = zero}, DType::float64,
                          [&](Config& config) { config.training.max_norm = max_norm; });
    const OneDevice one = test::one_device(run.model, run.start, run.batch);
    ASSERT_GT(one.norm, max_norm);

    ASSERT_TRUE(run.train());

    const std::vector<at::Tensor> after = run.parameters();
    for (std::size_t i = 0; i < after.size(); ++i) {
      const at::Tensor step = 0.1 * max_norm / (one.norm + 1e-6) * one.gradients[i];
      EXPECT_LT(test::relative_error(after[i], run.start[i] - step), 1e-12);
    }
  }
}

// Seen before the update, in the very step.
TEST(Sharded, MakesNoUpdateFromGradientsThatAreNotFinite) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    Running run = running({.zero = zero}, DType::float64, [](Config& config) {
      config.optimizer.name = OptimizerName::adamw;
      config.optimizer.weight_decay = 0.1;
    });
    ASSERT_TRUE(run.train(1));
    const std::vector<at::Tensor> before = run.parameters();

    *run.gradient_scale = std::nan("");
    const Expected<StepResult> bad = run.train(2);
    const std::vector<at::Tensor> after = run.parameters();
    *run.gradient_scale = 1;
    const Expected<StepResult> good = run.train(2);

    ASSERT_TRUE(bad);
    EXPECT_FALSE(bad->finite);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::equal(before[i], after[i]));
    }
    EXPECT_TRUE(good->finite) << "nothing of the bad gradient is left";
  }
}

// A step whose labels are all left out: as if it were not there, moments and their count too.
TEST(Sharded, MakesNoUpdateWithoutACountedLabel) {
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
    const auto adamw = [](Config& config) {
      config.optimizer.name = OptimizerName::adamw;
      config.optimizer.weight_decay = 0.1;
    };
    Running run = running({.zero = zero}, DType::float64, adamw);
    Running other = running({.zero = zero}, DType::float64, adamw);
    Batch empty = test::toy_batch(run.job.model, run.job.plans.train.global_rows, 2);
    empty.at(run.job.model.labels).fill_(-100);
    const auto nothing = [&](std::int64_t step) {
      return run.engine->train_step(test::feed(run.job.plans.train, empty, step));
    };

    const Expected<StepResult> first = nothing(1);
    ASSERT_TRUE(run.train(1) && other.train(1));
    const Expected<StepResult> second = nothing(2);
    const Expected<StepResult> evaluated =
        run.engine->evaluate_step(test::feed(run.job.plans.evaluate, empty));
    ASSERT_TRUE(run.train(2) && other.train(2));

    ASSERT_TRUE(first && second && evaluated) << to_string(first.error());
    for (const Expected<StepResult>* const step : {&first, &second, &evaluated}) {
      EXPECT_EQ((*step)->tokens, 0);
      EXPECT_TRUE(std::isnan((*step)->loss));
      EXPECT_EQ((*step)->grad_norm, 0);
      EXPECT_TRUE((*step)->finite);
      EXPECT_FALSE((*step)->updated());
    }
    const std::vector<at::Tensor> with = run.parameters(), without = other.parameters();
    for (std::size_t i = 0; i < with.size(); ++i) {
      EXPECT_TRUE(at::equal(with[i], without[i])) << zero << ' ' << i;
    }
  }
}

// A parameter without elements, one that the first micro-batch alone uses (the layer's own weight),
// and `unused`, which is nobody's.
TEST(Sharded, TrainsBesideParametersThatAreEmptyOrHardlyUsed) {
  const ShardedShape shape{.pp = 1, .dp = 2, .microbatches = 2, .zero = 3, .layers = 3};
  const auto with_more = [](ModelGraph& graph) {
    const Parameter like = graph.parameters[1];
    graph.parameters.push_back({"empty", like.dtype, {0, 5}, false, {}});
    graph.regions[2].parameters.push_back(ParameterId{5});
    graph.parameters.push_back({"unused", like.dtype, like.shape, false, {}});
  };
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
    for (const bool split : {false, true}) {
      for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}}) {
        ShardedShape other = shape;
        other.zero = zero, other.split_backward = split, other.bucket_bytes = bytes;
        SCOPED_TRACE(to_string(other));
        test::ShardedJob sharded = sharded_job(other);
        sharded.model = test::toy_graph({.layers = 3}, DType::float64);
        with_more(sharded.model);
        sharded.config.training.dtype = DType::float64;
        sharded.config.training.global_batch_size = 4;  // a row a micro-batch and rank
        sharded.config.optimizer.name = OptimizerName::sgd;
        sharded.config.optimizer.lr = 0.1;
        const auto plans = test::plan(sharded);
        ASSERT_TRUE(plans) << to_string(plans.error());
        const Job job{sharded.config, sharded.model, *plans};
        const auto build = [&] {
          LiveModel live = test::live_toy({.layers = 3}, DType::float64);
          with_more(live.graph);
          for (int more = 0; more < 2; ++more) {
            live.parameters.push_back(std::make_shared<at::Tensor>());
            live.inits.push_back(Init::normal(0.3));
          }
          // Rows whose first token is small skip the layer.
          const ParameterHandle w(live.parameters[2]);
          live.regions[2] = [w](const Tensors& in) {
            const bool uses = in[0].flatten()[0].item<double>() > 0;
            return Tensors{uses ? in[0] + at::tanh(at::linear(in[0], w)) : in[0] * 1.5};
          };
          return live;
        };
        const LiveModel model = build();
        auto engine = create_engine(job, [&]() -> Expected<LiveModel> { return build(); });
        ASSERT_TRUE(engine) << to_string(engine.error());
        (*engine)->keep_gradients(true);
        Batch batch = test::toy_batch(job.model, 5, 3);
        for (auto& [id, tensor] : batch) {
          tensor = tensor.narrow(0, 0, 4);  // in each something is counted
        }
        std::vector<at::Tensor> start;
        for (std::uint32_t i = 0; i < job.model.parameters.size(); ++i) {
          start.push_back((*engine)->parameter(0, ParameterId{i}).clone());
        }

        const auto result = (*engine)->train_step(test::feed(job.plans.train, batch));

        ASSERT_TRUE(result) << to_string(result.error());
        std::vector<at::Tensor> sums(start.size());
        for (std::int64_t row = 0; row < 4; ++row) {
          Batch one_row;
          for (const auto& [id, tensor] : batch) {
            one_row.emplace(id, tensor.narrow(0, row, 1));
          }
          const OneDevice one = test::one_device(model, start, one_row);
          for (std::size_t i = 0; i < sums.size(); ++i) {
            const at::Tensor part = one.gradients[i] * static_cast<double>(one.tokens);
            sums[i] = sums[i].defined() ? sums[i] + part : part;
          }
        }
        for (std::uint32_t i = 0; i < sums.size(); ++i) {
          const at::Tensor expected = sums[i] / static_cast<double>(result->tokens);
          const at::Tensor got = (*engine)->gradient(0, ParameterId{i});
          EXPECT_EQ(got.sizes(), expected.sizes());
          EXPECT_TRUE(at::allclose(got, expected, 1e-11, 1e-14)) << i;
          EXPECT_TRUE(at::allclose((*engine)->parameter(0, ParameterId{i}),
                                   start[i] - 0.1 * expected, 1e-11, 1e-14))
              << i;
        }
        EXPECT_EQ((*engine)->gradient(0, ParameterId{6}).abs().max().item<double>(), 0);
      }
    }
  }
}

TEST(Sharded, SetsAParameterOnEveryHome) {
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    Running run = running({.pp = 1, .dp = 3, .zero = zero}, DType::bfloat16);
    const ParameterId id{2};
    const at::Tensor value = at::rand(run.job.model.parameter(id).shape);

    run.engine->set_parameter(id, value);

    for (const std::uint32_t rank : {0U, 1U, 2U}) {
      EXPECT_TRUE(at::equal(run.engine->parameter(rank, id), value.to(at::kBFloat16)));
      EXPECT_TRUE(at::equal(run.engine->master(rank, id), value));
    }
    EXPECT_TRUE(at::equal(run.parameters()[1], run.start[1]));
    EXPECT_TRUE(at::equal(run.parameters()[3], run.start[3]));
  }
}

// Bytes that tasks of one kind moved for a bucket in a step, as a mean over the ranks that hold it.
std::map<std::pair<BucketId, Op>, double> volume(const Running& run, const StepResult& result) {
  const Plan& plan = run.job.plans.train;
  std::map<std::pair<BucketId, Op>, double> sums;
  for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
    const Program& program = plan.programs[plan.seat(rank).program];
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      const Task& task = program.tasks[t];
      if (valid(task.bucket) && is_communication(task.op)) {
        double ranks = 0;
        for (const std::uint32_t home : plan.buckets[index(task.bucket)].homes) {
          ranks += static_cast<double>(plan.programs[home].ranks.size());
        }
        sums[{task.bucket, task.op}] += static_cast<double>(result.moved[rank][t]) / ranks;
      }
    }
  }
  return sums;
}

// Tasks of one kind for a bucket on its first home.
double chains(const Plan& plan, BucketId bucket, Op op) {
  double count = 0;
  for (const Task& task : plan.programs[plan.buckets[index(bucket)].homes[0]].tasks) {
    count += task.op == op && task.bucket == bucket ? 1 : 0;
  }
  return count;
}

// b (d - 1) / d a reduce-scatter and a gather, twice that an all-reduce, 2 (b / d) (h - 1) / h over
// h further homes.
TEST(Sharded, MovesTheBytesOfItsChains) {
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
    for (const std::uint32_t hybrid : {0U, 2U}) {
      for (const Span span : {Span::chain, Span::step}) {
        const ShardedShape shape{.pp = 2,
                                 .dp = 4,
                                 .microbatches = 3,
                                 .zero = zero,
                                 .keep_gathered = span,
                                 .reduce = span,
                                 .hybrid = hybrid};
        SCOPED_TRACE(to_string(shape));
        Running run = running(shape);
        const Expected<StepResult> result = run.train(1, /*record=*/true);
        ASSERT_TRUE(result) << to_string(result.error());

        const Plan& plan = run.job.plans.train;
        auto moved = volume(run, *result);
        const double d = zero == 0 ? 1 : hybrid > 0 ? hybrid : 4, h = 4 / d;
        for (std::uint32_t i = 0; i < plan.buckets.size(); ++i) {
          const BucketId id{i};
          const auto b = static_cast<double>(plan.buckets[i].bytes());
          const double of_chains = zero == 3 ? chains(plan, id, Op::all_gather) : zero > 0 ? 1 : 0;
          const double reductions = zero > 1   ? chains(plan, id, Op::reduce_scatter)
                                    : zero > 0 ? 1
                                               : 0;
          EXPECT_DOUBLE_EQ((moved[{id, Op::all_gather}]), of_chains * b * (d - 1) / d);
          EXPECT_DOUBLE_EQ((moved[{id, Op::reduce_scatter}]), reductions * b * (d - 1) / d);
          EXPECT_DOUBLE_EQ((moved[{id, Op::all_reduce}]), 2 * b / d * (h - 1) / h);
          EXPECT_EQ(chains(plan, id, Op::reduce_scatter), reductions);
          if (span == Span::step && zero == 3) {
            EXPECT_EQ(of_chains, 1);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace piper
