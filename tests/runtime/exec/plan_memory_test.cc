// Whole plans on plain memory, without LibTorch: every task reads and writes what the plan says it
// does, where in the arena the plan puts it, and moves it through real communicators, while streams
// dawdle. What is read must be what was written for it; under the thread sanitizer, a wait that is
// missing is a data race.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/plan/groups.h"
#include "runtime/comm/local/connect.h"
#include "runtime/device/cpu/device.h"
#include "runtime/exec/executor.h"
#include "tests/support/sharded_toy.h"

namespace piper {
namespace {

// Of every buffer outside of the arena, and moved of any; each number of shards divides it.
constexpr std::size_t kWords = kArenaAlignment / sizeof(double);
using Words = std::array<double, kWords>;
constexpr double kFreed = -1;

// What a rank's buffers lie in.
struct RankMemory {
  explicit RankMemory(const Program& program)
      : arena(program.arena_bytes / sizeof(double)), own(program.buffers.size(), Words{}) {}
  std::span<double> of(const Plan& plan, const Program& program, BufferId id) {
    const Buffer& buffer = program.buffer(id);
    if (!buffer.in_arena()) {
      return own[index(id)];
    }
    const auto bytes = static_cast<std::size_t>(bytes_of(plan, program, 0, buffer));
    return {arena.data() + buffer.offset / sizeof(double),
            std::max(kWords, bytes / sizeof(double))};
  }
  std::vector<double> arena;
  std::vector<Words> own;
};

class PlainTask final : public TaskBody {
 public:
  PlainTask(const Plan& plan, std::uint32_t rank, std::uint32_t number, RankMemory& memory,
            const Communications& communications, std::atomic<int>& wrong)
      : plan_(plan),
        seat_(plan.seat(rank)),
        program_(plan.programs[seat_.program]),
        task_(program_.tasks[number]),
        rank_(rank),
        memory_(memory),
        communications_(communications),
        wrong_(wrong),
        random_(rank * 1000 + number) {}

  void launch(const Launch& launch) override {
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 8 == 0 ? 200 : 0));
    for (const BufferId id : program_.reads_of(task_)) {
      // What accumulates is read by its first writer too, before there is anything.
      const Buffer& buffer = program_.buffer(id);
      const bool first = !buffer.persistent() && &program_.task(buffer.alloc) == &task_;
      for (const double word : of(id)) {
        wrong_ += !first && !buffer.persistent() && word != stamp(id) ? 1 : 0;
      }
    }
    communicate(launch);
    for (const BufferId id : program_.writes_of(task_)) {
      std::ranges::fill(of(id), stamp(id));
    }
    for (const BufferId id : program_.frees_of(task_)) {
      std::ranges::fill(of(id), kFreed);
    }
  }

 private:
  static double stamp(BufferId id) { return 1 + index(id); }
  std::span<double> of(BufferId id) const { return memory_.of(plan_, program_, id); }

  BufferId only(std::span<const BufferId> buffers, Buffer::Kind kind) const {
    for (const BufferId id : buffers) {
      if (program_.buffer(id).kind == kind) {
        return id;
      }
    }
    PIPER_CHECK(false, "a task without the buffer that it needs");
  }

  void communicate(const Launch& launch) {
    if (!valid(task_.communicator)) {
      return;
    }
    const Communication& own = communications_[index(task_.communicator)];
    if (is_point_to_point(task_.op)) {
      const auto buffers =
          task_.op == Op::send ? program_.reads_of(task_) : program_.writes_of(task_);
      const Message message{index(task_.node), index(task_.peer), DType::float64,
                            of(buffers[0]).data(), kWords};
      task_.op == Op::send ? own.point_to_point->send(launch, message)
                           : own.point_to_point->recv(launch, message);
      return;
    }
    const GroupSeat seat = group_seat(plan_.communicators[index(task_.communicator)], rank_);
    Collective& group = *own.collective;
    const auto tag = static_cast<std::uint64_t>(task_.op) << 32 | index(task_.bucket);
    const std::size_t part = kWords / group.size();
    switch (task_.op) {
      case Op::reduce_scatter: {
        const std::span<double> whole =
            of(only(program_.reads_of(task_), Buffer::Kind::full_gradient));
        const std::span<double> mine =
            of(only(program_.writes_of(task_), Buffer::Kind::parameter_gradient));
        group.reduce_scatter(launch, {tag, DType::float64, whole.data(), kWords, mine.data()});
        return;
      }
      case Op::all_gather: {
        const std::span<double> whole = of(program_.writes_of(task_)[0]);
        const std::span<double> kept = of(program_.reads_of(task_)[0]);
        const bool in_place = whole.data() == kept.data();
        group.all_gather(
            launch, {tag, DType::float64, kept.data() + (in_place ? seat.place * part : 0), part,
                     whole.data()});
        return;
      }
      case Op::all_reduce: {
        const std::span<double> mine = of(program_.writes_of(task_)[0]);
        group.all_reduce(launch, {tag, DType::float64, mine.data(), kWords});
        return;
      }
      default: {  // a scalar
        double number = 1;
        group.all_reduce(launch, {tag, DType::float64, &number, 1});
        wrong_ += number != group.size() ? 1 : 0;
      }
    }
  }

  const Plan& plan_;
  const Plan::Seat seat_;
  const Program& program_;
  const Task& task_;
  std::uint32_t rank_;
  RankMemory& memory_;
  const Communications& communications_;
  std::atomic<int>& wrong_;
  std::minstd_rand random_;
};

// How many words were not what they should have been in some periods of the plan.
int words_wrong(const Plan& plan, const ModelGraph& model) {
  Cancellation cancellation;
  Outcome outcome{cancellation};
  const Plans plans{plan, {}, {}};
  CpuDevice device(cancellation, 2);
  std::vector<std::uint32_t> ranks(plan.world);
  std::iota(ranks.begin(), ranks.end(), 0);
  Workers workers(plans, ranks, device, [](std::size_t) {});
  const auto communications = LocalConnections(cancellation, {}).connect(plan);
  std::atomic<int> wrong{0};
  std::vector<std::unique_ptr<RankMemory>> memory;
  std::vector<Bodies> bodies(plan.world);
  for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
    const Program& program = plan.programs[plan.seat(rank).program];
    memory.push_back(std::make_unique<RankMemory>(program));
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
      bodies[rank].push_back(
          std::make_unique<PlainTask>(plan, rank, t, *memory.back(), communications[rank], wrong));
    }
  }
  Executor executor(plan, model, ranks, std::move(bodies), device, workers, cancellation, outcome);
  for (int step = 1; step <= 4; ++step) {
    const Status status = executor.run(step, 1, std::chrono::seconds(30));
    EXPECT_TRUE(status) << (status ? "" : to_string(status.error()));
  }
  return wrong;
}

std::vector<test::ShardedShape> shapes() {
  std::vector<test::ShardedShape> all;
  for (const test::ShardedShape& shape : test::small_shapes()) {
    if (shape.ep == 0) {
      all.push_back(shape);
    }
  }
  for (const std::uint32_t zero : {1U, 2U, 3U}) {
    all.push_back(
        {.dp = 4, .microbatches = 4, .zero = zero, .prefetch = 2, .split_backward = true});
    all.push_back({.dp = 4, .zero = zero, .hybrid = 2, .tied = true});
    all.push_back({.microbatches = 4, .zero = zero, .bidirectional = true});
  }
  return all;
}

TEST(PlanOnPlainMemory, ReadsWhatWasWrittenForItWhileStreamsDawdle) {
  for (const test::ShardedShape& shape : shapes()) {
    const test::ShardedJob job = test::sharded_job(shape);
    const auto plans = test::plan(job);
    ASSERT_TRUE(plans) << to_string(plans.error());
    EXPECT_EQ(words_wrong(plans->train, job.model), 0) << to_string(shape);
    EXPECT_EQ(words_wrong(plans->evaluate, job.model), 0) << to_string(shape);
  }
}

// The test can fail: two buffers that live in one place at one time are noticed.
TEST(PlanOnPlainMemory, NoticesAPlaceThatIsUsedTwiceAtOnce) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer notices it too, and ends the test";
#endif
  const test::ShardedJob job = test::sharded_job({.microbatches = 4, .zero = 3, .prefetch = 2});
  auto plans = test::plan(job);
  ASSERT_TRUE(plans) << to_string(plans.error());
  for (Program& program : plans->train.programs) {
    for (Buffer& buffer : program.buffers) {
      buffer.offset = buffer.kind == Buffer::Kind::gathered ? 0 : buffer.offset;
    }
  }

  EXPECT_GT(words_wrong(plans->train, job.model), 0);
}

}  // namespace
}  // namespace piper
