#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/local/channel.h"
#include "runtime/comm/local/collective.h"
#include "runtime/device/cpu/device.h"
#include "runtime/exec/executor.h"
#include "tests/support/plan_builder.h"

namespace piper {
namespace {

using std::chrono::milliseconds;
using test::PlanBuilder;
using test::ProgramBuilder;
using test::TaskRef;

using Action = std::function<void(const Launch&)>;

struct ActionTask final : TaskBody {
  explicit ActionTask(Action a) : action(std::move(a)) {}
  void launch(const Launch& launch) override { action(launch); }
  Action action;
};

// An event that writes what happens to it into a log, and never blocks.
struct RecordingDevice final : Device {
  struct RecordingEvent final : Event {
    RecordingEvent(std::vector<std::string>& l, std::size_t n) : log(l), number(n) {}
    void record(std::uint64_t generation) override { write("record ", generation); }
    void wait(std::uint64_t generation) override { write("wait ", generation); }
    void write(const char* what, std::uint64_t generation) {
      log.push_back(what + std::to_string(number) + '@' + std::to_string(generation));
    }
    std::vector<std::string>& log;
    std::size_t number;
  };
  // Runs jobs at once, on the caller's thread.
  struct Inline final : DeviceStream {
    void enqueue(std::function<void()> job) override { job(); }
    void stamp(std::uint64_t& time) override { time = 0; }
    void count(std::atomic<std::uint64_t>& counter) override { ++counter; }
    void then(std::function<void(std::exception_ptr)> call) override { call(nullptr); }
    void abandon() override {}
  };
  DeviceId id() const override { return {7, 3}; }
  std::uint64_t now() const override { return 0; }
  std::unique_ptr<Event> make_event() override {
    return std::make_unique<RecordingEvent>(log, events++);
  }
  std::unique_ptr<DeviceStream> make_stream(const std::string&, std::function<void()>) override {
    return std::make_unique<Inline>();
  }
  std::vector<std::string> log;
  std::size_t events = 0;
};

// An executor of closures. `action(rank, task)` makes a task's.
struct Harness {
  Harness(const Plan& p,
          const std::function<Action(std::uint32_t rank, std::uint32_t task)>& action,
          Device* other = nullptr)
      : plans{p, {}}, device(cancellation, 2) {
    Device& used = other != nullptr ? *other : device;
    std::vector<std::uint32_t> ranks(p.world);
    std::iota(ranks.begin(), ranks.end(), 0);
    workers = std::make_unique<Workers>(plans, ranks, used, [](std::size_t) {});
    std::vector<Bodies> bodies(p.world);
    for (std::uint32_t rank = 0; rank < p.world; ++rank) {
      const Program& program = p.programs[p.seat(rank).program];
      for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
        bodies[rank].push_back(std::make_unique<ActionTask>(action(rank, t)));
      }
    }
    executor = std::make_unique<Executor>(plans.train, model, ranks, std::move(bodies), used,
                                          *workers, cancellation, outcome);
  }
  ~Harness() { workers.reset(); }

  Status run(milliseconds timeout = milliseconds(10000)) {
    return executor->run(++step, 1.0, timeout);
  }

  Plans plans;
  ModelGraph model;
  Cancellation cancellation;
  Outcome outcome{cancellation};
  CpuDevice device;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Workers> workers;
  std::int64_t step = 0;
};

const Action kNothing = [](const Launch&) {};

TEST(Executor, WaitsLaunchesAndRecordsInTheOrderOfThePlanWithTheGenerationOfThePeriod) {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  const StreamId compute = p.stream("compute", Stream::Kind::compute);
  const StreamId reduce = p.stream("reduce");
  const TaskRef a = p.task(compute, {.op = Op::forward});
  const TaskRef b = p.task(compute, {.op = Op::backward});
  const TaskRef c = p.task(reduce, {.op = Op::all_reduce}, {.waits = {b}});
  p.task(reduce, {.op = Op::all_reduce}, {.waits = {a}, .previous = {c}});
  RecordingDevice device;
  Harness harness(
      builder.build(),
      [&](std::uint32_t, std::uint32_t task) {
        return [&, task](const Launch&) { device.log.push_back("run " + std::to_string(task)); };
      },
      &device);

  ASSERT_TRUE(harness.run());
  ASSERT_TRUE(harness.run());

  EXPECT_EQ(device.log,
            (std::vector<std::string>{"run 0", "record 0@1", "run 1",    "record 1@1", "wait 1@1",
                                      "run 2", "record 2@1", "wait 0@1", "wait 2@0",   "run 3",
                                      "run 0", "record 0@2", "run 1",    "record 1@2", "wait 1@2",
                                      "run 2", "record 2@2", "wait 0@2", "wait 2@1",   "run 3"}));
}

TEST(Executor, GivesTasksTheStepAndTheLearningRateFactor) {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  p.task(p.stream("compute", Stream::Kind::compute), {.op = Op::update});
  std::optional<Launch> seen;
  Harness harness(builder.build(), [&](std::uint32_t, std::uint32_t) {
    return [&](const Launch& launch) { seen.emplace(launch); };
  });

  ASSERT_TRUE(harness.executor->run(42, 0.25, milliseconds(1000)));

  EXPECT_EQ(seen->generation, 1u);
  EXPECT_EQ(seen->step, 42);
  EXPECT_EQ(seen->lr_factor, 0.25);
}

TEST(Executor, CountsComputeTimeWithoutWaitsOrCommunication) {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  const StreamId compute = p.stream("compute", Stream::Kind::compute);
  const TaskRef sent = p.task(p.stream("reduce"), {.op = Op::all_reduce});
  p.task(compute, {.op = Op::forward}, {.waits = {sent}});
  p.task(compute, {.op = Op::loss_report});
  Harness harness(builder.build(), [&](std::uint32_t, std::uint32_t task) {
    const milliseconds time(task == 0 ? 20 : 300);
    return [time](const Launch&) { std::this_thread::sleep_for(time); };
  });

  // Task 0 is the forward: tasks are numbered stream by stream.
  ASSERT_TRUE(harness.run());

  EXPECT_GE(harness.executor->busy()[0], 20'000'000);
  EXPECT_LT(harness.executor->busy()[0], 300'000'000);
}

// Two ranks, a pipeline of sends and receives with waits both ways, tasks of random length: what
// the last stage sees must be what the plan's order says, in every period.
TEST(Executor, KeepsTheOrderOfThePlanUnderRandomDelays) {
  constexpr std::uint32_t kMicrobatches = 6;
  PlanBuilder builder(kMicrobatches, kMicrobatches);
  Cancellation unused;
  ProgramBuilder& first = builder.program({0});
  ProgramBuilder& second = builder.program({1});
  const StreamId compute0 = first.stream("compute", Stream::Kind::compute);
  const StreamId send = first.stream("send 0>1");
  const StreamId compute1 = second.stream("compute", Stream::Kind::compute);
  const StreamId recv = second.stream("recv 0>1");
  TaskRef received;
  for (std::uint32_t m = 0; m < kMicrobatches; ++m) {
    const NodeId s = builder.node(), r = builder.node();
    // One value in flight on each side: produce(m) waits for the send of m - 1.
    const TaskRef sent{index(send), m == 0 ? kMicrobatches - 1 : m - 1};
    const TaskRef made =
        first.task(compute0, {.op = Op::forward, .microbatch = m},
                   m == 0 ? test::Uses{.previous = {sent}} : test::Uses{.waits = {sent}});
    first.task(send, {.node = s, .op = Op::send, .microbatch = m, .peer = r}, {.waits = {made}});
    const TaskRef used{index(compute1), m == 0 ? kMicrobatches - 1 : m - 1};
    received = second.task(recv, {.node = r, .op = Op::recv, .microbatch = m, .peer = s},
                           m == 0 ? test::Uses{.previous = {used}} : test::Uses{.waits = {used}});
    second.task(compute1, {.op = Op::forward, .microbatch = m}, {.waits = {received}});
  }
  const Plan plan = builder.build();

  Cancellation* cancellation = nullptr;
  std::unique_ptr<LocalChannel> link;
  std::int64_t produced = 0, outgoing = 0, incoming = 0;
  std::vector<std::int64_t> seen;
  Harness harness(plan, [&](std::uint32_t rank, std::uint32_t t) -> Action {
    const Task& task = plan.programs[rank].tasks[t];
    auto random = std::make_shared<std::minstd_rand>(1000 * rank + t);
    return [&, task, rank, random](const Launch&) {
      std::this_thread::sleep_for(std::chrono::microseconds((*random)() % 200));
      if (task.op == Op::send) {
        link->send({index(task.node), index(task.peer), DType::int64, &outgoing, 1});
      } else if (task.op == Op::recv) {
        link->recv({index(task.node), index(task.peer), DType::int64, &incoming, 1});
      } else if (rank == 0) {
        outgoing = produced++;
      } else {
        seen.push_back(incoming);
      }
    };
  });
  cancellation = &harness.cancellation;
  link = std::make_unique<LocalChannel>(*cancellation, 0, 1);

  constexpr int kPeriods = 20;
  for (int period = 0; period < kPeriods; ++period) {
    ASSERT_TRUE(harness.run());
  }

  ASSERT_EQ(seen.size(), kPeriods * kMicrobatches);
  for (int i = 0; i < static_cast<int>(seen.size()); ++i) {
    EXPECT_EQ(seen[i], i);
  }
}

// Two ranks that meet in a collective; rank 1 throws before it.
Plan two_ranks_that_meet() {
  PlanBuilder builder(2, 2);
  ProgramBuilder& first = builder.program({0});
  ProgramBuilder& second = builder.program({1});
  for (ProgramBuilder* p : {&first, &second}) {
    const StreamId compute = p->stream("compute", Stream::Kind::compute);
    const StreamId reduce = p->stream("reduce");
    const TaskRef made =
        p->task(compute, {.op = Op::backward, .chunk = ChunkId{0}, .microbatch = 1});
    const TaskRef met =
        p->task(reduce, {.op = Op::all_reduce, .bucket = BucketId{0}}, {.waits = {made}});
    p->task(compute, {.op = Op::update, .bucket = BucketId{0}}, {.waits = {met}});
  }
  builder.plan().tag_names = {"layer", "PP"};
  builder.plan().chunks.push_back({.tags = {{TagId{0}, 9}, {TagId{1}, 3}}});
  return builder.build();
}

TEST(Executor, EndsAllRanksWithTheMessageOfTheOneThatThrew) {
  const Plan plan = two_ranks_that_meet();
  std::unique_ptr<LocalGroup> group;
  Harness harness(plan, [&](std::uint32_t rank, std::uint32_t t) -> Action {
    const Op op = plan.programs[rank].tasks[t].op;
    if (op == Op::backward && rank == 1) {
      return [](const Launch&) {
        throw std::runtime_error("the matrix is singular\nframe #0: somewhere");
      };
    }
    if (op == Op::all_reduce) {
      return [&, rank](const Launch&) {
        float value = 0;
        group->all_reduce(rank, {0, DType::float32, &value, 1});
      };
    }
    return kNothing;
  });
  group = std::make_unique<LocalGroup>(harness.cancellation, std::vector<std::uint32_t>{0, 1});

  const auto start = std::chrono::steady_clock::now();
  const Status status = harness.run();
  const auto took = std::chrono::steady_clock::now() - start;

  ASSERT_FALSE(status);
  EXPECT_EQ(to_string(status.error()),
            "error: rank 1 failed in backward of stage 3, micro-batch 1 (stream compute): the "
            "matrix is singular [run.failed]");
  EXPECT_LT(took, std::chrono::seconds(1));
  EXPECT_FALSE(harness.executor->wedged());
  EXPECT_FALSE(harness.run()) << "a failed engine stays unusable";
}

TEST(Executor, KeepsTheCodeOfATaskFailure) {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  p.task(p.stream("scalar"), {.op = Op::token_count});
  Harness harness(builder.build(), [&](std::uint32_t, std::uint32_t) {
    return [](const Launch&) { throw TaskFailure("run.batch", "nothing to count"); };
  });

  const Status status = harness.run();

  ASSERT_FALSE(status);
  EXPECT_EQ(to_string(status.error()),
            "error: rank 0 failed in token_count (stream scalar): nothing to count [run.batch]");
}

TEST(Executor, EndsSoonWhenCancelledFromAnotherThread) {
  const Plan plan = two_ranks_that_meet();
  std::unique_ptr<LocalGroup> group;
  Harness harness(plan, [&](std::uint32_t rank, std::uint32_t t) -> Action {
    if (plan.programs[rank].tasks[t].op == Op::all_reduce && rank == 0) {
      return [&](const Launch&) {
        float value = 0;
        group->all_reduce(0, {0, DType::float32, &value, 1});  // rank 1 never comes
      };
    }
    return kNothing;
  });
  group = std::make_unique<LocalGroup>(harness.cancellation, std::vector<std::uint32_t>{0, 1});

  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(20));
    harness.outcome.fail(error("run.cancelled", "interrupted"));
  });
  const Status status = harness.run();
  canceller.join();

  ASSERT_FALSE(status);
  EXPECT_EQ(to_string(status.error()), "error: interrupted [run.cancelled]");
}

TEST(Executor, EndsAPlanThatIsStuckWithABoardOfWhoWaitsForWhat) {
  const Plan plan = two_ranks_that_meet();
  std::unique_ptr<LocalGroup> group;
  Harness harness(plan, [&](std::uint32_t rank, std::uint32_t t) -> Action {
    if (plan.programs[rank].tasks[t].op == Op::all_reduce && rank == 0) {
      return [&](const Launch&) {
        float value = 0;
        group->all_reduce(0, {0, DType::float32, &value, 1});  // rank 1 never comes
      };
    }
    return kNothing;
  });
  group = std::make_unique<LocalGroup>(harness.cancellation, std::vector<std::uint32_t>{0, 1});

  const Status status = harness.run(milliseconds(200));

  ASSERT_FALSE(status);
  EXPECT_EQ(to_string(status.error()),
            "error: nothing has moved for 0.2 s [run.stuck]\n"
            "note: update of bucket 0 on stream compute of rank 0 waits for all_reduce of bucket 0 "
            "on stream reduce\n"
            "note: all_reduce of bucket 0 on stream reduce of rank 0 waits for its peers");
  EXPECT_FALSE(harness.executor->wedged());
}

TEST(Executor, IsNotStuckWhileTasksFinishElsewhere) {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  const StreamId compute = p.stream("compute", Stream::Kind::compute);
  const StreamId host = p.stream("host", Stream::Kind::host);
  for (int i = 0; i < 20; ++i) {
    p.task(compute, {.op = Op::forward});
  }
  p.task(host, {.op = Op::input});
  Harness harness(builder.build(), [&](std::uint32_t, std::uint32_t task) -> Action {
    const milliseconds time(task < 20 ? 30 : 600);
    return [time](const Launch&) { std::this_thread::sleep_for(time); };
  });

  EXPECT_TRUE(harness.run(milliseconds(300)));
}

TEST(Executor, GivesUpOnATaskThatNeverReturns) {
  PlanBuilder builder(1, 1);
  ProgramBuilder& p = builder.program({0});
  p.task(p.stream("compute", Stream::Kind::compute), {.op = Op::update});
  // What an abandoned thread can reach lives on.
  const auto hold = std::make_shared<std::mutex>();
  hold->lock();
  static Harness* harness = nullptr;  // so that it is no leak
  harness = new Harness(builder.build(), [&](std::uint32_t, std::uint32_t) {
    return [hold](const Launch&) { const std::lock_guard lock(*hold); };
  });

  const Status status = harness->run(milliseconds(100));
  const bool wedged = harness->executor->wedged();
  hold->unlock();

  ASSERT_FALSE(status);
  EXPECT_EQ(to_string(status.error()),
            "error: nothing has moved for 0.1 s [run.stuck]\n"
            "note: update on stream compute of rank 0 has not returned");
  EXPECT_TRUE(wedged);
  std::this_thread::sleep_for(milliseconds(50));
}

}  // namespace
}  // namespace piper
