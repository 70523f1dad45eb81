// What the executor costs a task: real plans whose tasks do nothing but move a few bytes.
//
//   one_stream   the loop alone: 1000 tasks that wait for nothing and record nothing
//   events       1000 tasks that each wait for an event that is there, and record one
//   wake_ups     two streams that take turns: each task sleeps until the other's has ended
//   pipeline     two ranks, 1F1B, 8 micro-batches, as core plans it, transfers included
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/pipeline.h"
#include "runtime/comm/local/connect.h"
#include "runtime/device/cpu/device.h"
#include "runtime/exec/executor.h"
#include "tests/support/plan_builder.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::PlanBuilder;
using test::ProgramBuilder;
using test::TaskRef;

struct Empty final : TaskBody {
  void launch(const Launch&) override {}
};

// A send, a receive, or a sum of one number.
struct Exchange final : TaskBody {
  explicit Exchange(std::function<void(const Launch&)> c) : call(std::move(c)) {}
  void launch(const Launch& launch) override { call(launch); }
  std::function<void(const Launch&)> call;
};

// A plan with threads, events and communicators, whose chunks are empty.
class Harness {
 public:
  explicit Harness(Plan plan)
      : plans_{std::move(plan), {}, {}}, device_(cancel_, threads(plans_.train)) {
    const Plan& train = plans_.train;
    std::vector<std::uint32_t> ranks(train.world);
    std::iota(ranks.begin(), ranks.end(), 0);
    workers_ = std::make_unique<Workers>(plans_, ranks, device_, [](std::size_t) {});
    communications_ = LocalConnections(cancel_, {}).connect(train);
    std::vector<Bodies> bodies(train.world);
    for (std::uint32_t rank = 0; rank < train.world; ++rank) {
      for (const Task& task : train.programs[train.seat(rank).program].tasks) {
        bodies[rank].push_back(body(rank, task));
        ++tasks_;
      }
    }
    executor_ = std::make_unique<Executor>(plans_.train, model_, ranks, std::move(bodies), device_,
                                           *workers_, cancel_, outcome_);
  }

  void run() {
    if (!executor_->run(1, 1, std::chrono::seconds(10))) {
      std::abort();
    }
  }
  std::size_t tasks() const { return tasks_; }

 private:
  std::unique_ptr<TaskBody> body(std::uint32_t rank, const Task& task) {
    if (!valid(task.communicator)) {
      return std::make_unique<Empty>();
    }
    const Communication& own = communications_[rank][index(task.communicator)];
    numbers_.push_back(std::make_unique<double>(0));
    double* const number = numbers_.back().get();
    if (is_point_to_point(task.op)) {
      const Message message{index(task.node), index(task.peer), DType::float64, number, 1};
      const bool sends = task.op == Op::send;
      return std::make_unique<Exchange>([=, &link = *own.point_to_point](const Launch& launch) {
        sends ? link.send(launch, message) : link.recv(launch, message);
      });
    }
    return std::make_unique<Exchange>([=, &group = *own.collective](const Launch& launch) {
      group.all_reduce(launch, {0, DType::float64, number, 1});
    });
  }

  static std::size_t threads(const Plan& plan) {
    std::size_t count = 0;
    for (const Program& program : plan.programs) {
      count += program.ranks.size() * program.streams.size();
    }
    return count;
  }

  Plans plans_;
  ModelGraph model_;
  Cancellation cancel_;
  Outcome outcome_{cancel_};
  CpuDevice device_;
  std::vector<Communications> communications_;
  std::vector<std::unique_ptr<double>> numbers_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Workers> workers_;
  std::size_t tasks_ = 0;
};

constexpr int kTasks = 1000;

Plan one_stream() {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  const StreamId compute = p.stream("compute", Stream::Kind::compute);
  for (int i = 0; i < kTasks; ++i) {
    p.task(compute, Task{});
  }
  return builder.build();
}

Plan events() {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  const StreamId compute = p.stream("compute", Stream::Kind::compute);
  TaskRef last = p.task(compute, Task{});
  for (int i = 1; i < kTasks; ++i) {
    test::Uses uses;
    uses.waits = {last};
    last = p.task(compute, Task{}, uses);
  }
  return builder.build();
}

Plan wake_ups() {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  const StreamId a = p.stream("compute", Stream::Kind::compute);
  const StreamId b = p.stream("reduce");
  TaskRef last = p.task(a, Task{});
  for (int i = 1; i < kTasks; ++i) {
    test::Uses uses;
    uses.waits = {last};
    last = p.task(i % 2 == 0 ? a : b, Task{}, uses);
  }
  return builder.build();
}

Plan pipeline() {
  const ModelGraph model = test::toy_model();
  const Config config = test::toy_config(2, 1, 8);
  auto plans = plan(config, model, {test::toy_pipeline(config, model)});
  if (!plans) {
    std::fprintf(stderr, "%s\n", to_string(plans.error()).c_str());
    std::abort();
  }
  return std::move(plans->train);
}

void executor(benchmark::State& state, Plan (*make)()) {
  Harness harness(make());
  for (auto _ : state) {
    harness.run();
  }
  state.counters["us_per_task"] = benchmark::Counter(
      static_cast<double>(harness.tasks()) * 1e-6,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(executor, one_stream, one_stream)->UseRealTime();
BENCHMARK_CAPTURE(executor, events, events)->UseRealTime();
BENCHMARK_CAPTURE(executor, wake_ups, wake_ups)->UseRealTime();
BENCHMARK_CAPTURE(executor, pipeline, pipeline)->UseRealTime();

// The best of many periods, in microseconds a task: the machine may have other work.
double best(Plan (*make)()) {
  Harness harness(make());
  double shortest = 1e9;
  for (int i = 0; i < 300; ++i) {
    const auto start = std::chrono::steady_clock::now();
    harness.run();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    shortest = std::min(shortest, took.count() / static_cast<double>(harness.tasks()));
  }
  return shortest;
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  const double loop = piper::best(piper::one_stream), event = piper::best(piper::events);
  const double wake_up = piper::best(piper::wake_ups), pipeline = piper::best(piper::pipeline);
  std::printf(
      "of a task on the pipeline: loop %.2f us, an event that is there %.2f us; "
      "a wake-up between threads costs %.2f us%s\n",
      loop, event - loop, wake_up - event, wake_up - event > pipeline / 4 ? " and dominates" : "");
  std::printf("bench runtime executor_us_per_task = %.2f (target 5)\n", pipeline);
}
