// Tasks that need a number which only the run knows: whoever computes it, and one that makes a
// tensor of that size.
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/tasks/host_fact.h"
#include "runtime/tasks/task.h"
#include "tests/runtime/tasks/harness.h"

namespace piper::test {
namespace {

// A stream of a device that is behind its host: what it is given is done when the test says so.
class BehindStream final : public DeviceStream {
 public:
  void catch_up(const std::exception_ptr& failure = {}) {
    for (const auto& call : std::exchange(calls_, {})) {
      call(failure);
    }
  }
  void then(std::function<void(std::exception_ptr)> call) override {
    calls_.push_back(std::move(call));
  }
  void enqueue(std::function<void()> job) override { job(); }
  void stamp(std::uint64_t&) override {}
  void count(std::atomic<std::uint64_t>&) override {}
  void abandon() override {}

 private:
  std::vector<std::function<void(std::exception_ptr)>> calls_;
};

class CountingTask final : public TaskBody {
 public:
  explicit CountingTask(Cell& cell) : fact_(*std::get<std::unique_ptr<HostFact>>(cell)) {}
  void launch(const Launch& launch) override {
    fact_.give(launch, at::tensor({rows, rows + 1}, at::kLong));
  }
  std::int64_t rows = 3;

 private:
  HostFact& fact_;
};

class SizedTask final : public TaskBody {
 public:
  explicit SizedTask(Cell& cell) : fact_(*std::get<std::unique_ptr<HostFact>>(cell)) {}
  void launch(const Launch& launch) override { made = at::zeros(fact_.await(launch)); }
  at::Tensor made;

 private:
  HostFact& fact_;
};

struct FactRun {
  Cancellation cancellation;
  std::atomic<std::uint64_t> waits{0};
  Cell cell = std::make_unique<HostFact>(2, cancellation, waits);
  CountingTask giver{cell};
  SizedTask user{cell};
  BehindStream stream;
  Launch period(std::uint64_t generation) { return {stream, {}, generation, 1}; }
};

TEST(HostFact, MakesAnotherThreadWaitUntilTheStreamHasComeThere) {
  FactRun run;
  run.giver.launch(run.period(1));
  std::atomic<bool> launched{false};
  std::thread other([&] {
    run.user.launch(run.period(1));
    launched = true;
  });
  while (run.waits == 0) {
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(launched) << "the number has been launched, not computed";

  run.stream.catch_up();
  other.join();

  EXPECT_EQ(run.user.made.sizes(), (at::IntArrayRef{3, 4}));
  EXPECT_EQ(run.waits, 1U);
}

TEST(HostFact, IsThatOfThePeriod) {
  FactRun run;
  run.giver.launch(run.period(1));
  run.stream.catch_up();
  run.user.launch(run.period(1));
  run.giver.rows = 5;
  std::thread other([&] { run.user.launch(run.period(2)); });
  while (run.waits == 1) {
    std::this_thread::yield();
  }

  run.giver.launch(run.period(2));
  run.stream.catch_up();
  other.join();

  EXPECT_EQ(run.user.made.sizes(), (at::IntArrayRef{5, 6}));
  EXPECT_EQ(run.waits, 2U);
}

TEST(HostFact, EndsItsWaitWhenTheRunIsCancelledOrItsStreamFails) {
  FactRun cancelled, failed;
  std::thread canceller([&] {
    while (cancelled.waits == 0) {
      std::this_thread::yield();
    }
    cancelled.cancellation.request();
  });
  EXPECT_THROW(cancelled.user.launch(cancelled.period(1)), Cancelled);
  canceller.join();

  failed.giver.launch(failed.period(1));
  failed.stream.catch_up(std::make_exception_ptr(std::runtime_error("a broken kernel")));
  EXPECT_THROW(failed.user.launch(failed.period(1)), std::runtime_error);
}

}  // namespace
}  // namespace piper::test
