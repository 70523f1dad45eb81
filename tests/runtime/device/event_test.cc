#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/device/cancellation.h"
#include "runtime/device/cpu/device.h"
#include "runtime/device/cpu/event.h"

namespace piper {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Event, LetsAWaitThroughThatComesAfterTheRecord) {
  Cancellation cancellation;
  CpuEvent event(cancellation, microseconds{0});
  event.record(3);

  event.wait(2);
  event.wait(3);
}

TEST(Event, NeedsNoRecordForGenerationZero) {
  Cancellation cancellation;
  CpuEvent event(cancellation, microseconds{0});

  event.wait(0);
}

TEST(Event, HoldsAWaitUntilItsGenerationIsRecorded) {
  for (const microseconds patience : {microseconds{0}, microseconds{50}}) {
    Cancellation cancellation;
    CpuEvent event(cancellation, patience);
    std::atomic<bool> passed{false};
    event.record(1);

    std::thread waiter([&] {
      event.wait(2);
      passed = true;
    });
    std::this_thread::sleep_for(milliseconds(20));
    const bool too_early = passed;
    event.record(2);
    waiter.join();

    EXPECT_FALSE(too_early);
    EXPECT_TRUE(passed);
  }
}

TEST(Event, LosesNoWakeUpBetweenManyWaitersAndRecords) {
  Cancellation cancellation;
  CpuEvent ping(cancellation, microseconds{0});
  CpuEvent pong(cancellation, microseconds{0});
  constexpr std::uint64_t kRounds = 3000;
  std::uint64_t shared = 0;  // ordered by the events alone: for the thread sanitizer

  std::thread other([&] {
    for (std::uint64_t g = 1; g <= kRounds; ++g) {
      ping.wait(g);
      ++shared;
      pong.record(g);
    }
  });
  for (std::uint64_t g = 1; g <= kRounds; ++g) {
    ++shared;
    ping.record(g);
    pong.wait(g);
  }
  other.join();

  EXPECT_EQ(shared, 2 * kRounds);
}

TEST(Event, EndsItsWaitsWhenTheRunIsCancelled) {
  Cancellation cancellation;
  CpuEvent event(cancellation, microseconds{0});
  std::vector<std::future<void>> waits;
  for (int i = 0; i < 3; ++i) {
    waits.push_back(std::async(std::launch::async, [&] { event.wait(1); }));
  }

  std::this_thread::sleep_for(milliseconds(5));
  cancellation.request();

  for (std::future<void>& wait : waits) {
    EXPECT_THROW(wait.get(), Cancelled);
  }
}

TEST(Stream, RunsJobsInOrderOnAThreadOfItsOwn) {
  Cancellation cancellation;
  CpuDevice device(cancellation, 1);
  std::vector<int> order;
  std::thread::id start, worker;
  std::promise<void> done;

  auto stream = device.make_stream("a", [&] { start = std::this_thread::get_id(); });
  for (int i = 0; i < 100; ++i) {
    stream->enqueue([&, i] {
      order.push_back(i);
      worker = std::this_thread::get_id();
    });
  }
  stream->enqueue([&] { done.set_value(); });
  done.get_future().wait();

  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(start, worker);
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST(Stream, EndsWhileIdleAndDropsWhatHasNotStarted) {
  Cancellation cancellation;
  CpuDevice device(cancellation, 1);
  std::atomic<int> ran{0};
  std::promise<void> started, go;

  auto stream = device.make_stream("a", [] {});
  stream->enqueue([&] {
    ++ran;
    started.set_value();
    go.get_future().wait();
  });
  stream->enqueue([&] { ++ran; });
  started.get_future().wait();
  std::thread release([&] {
    std::this_thread::sleep_for(milliseconds(20));
    go.set_value();
  });
  stream.reset();
  release.join();

  EXPECT_EQ(ran, 1);
}

TEST(Stream, DoesNotWaitForAnAbandonedJob) {
  Cancellation cancellation;
  CpuDevice device(cancellation, 1);
  auto go = std::make_shared<std::promise<void>>();
  auto started = std::make_shared<std::promise<void>>();
  auto ended = std::make_shared<std::promise<void>>();

  auto stream = device.make_stream("a", [] {});
  stream->enqueue([=] {
    started->set_value();
    go->get_future().wait();
    ended->set_value();
  });
  started->get_future().wait();
  stream->abandon();
  stream.reset();  // would hang here

  go->set_value();
  ended->get_future().wait();
}

}  // namespace
}  // namespace piper
