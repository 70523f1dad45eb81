#include "runtime/exec/executor.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "runtime/tasks/describe.h"

namespace piper {
namespace {

// Of LibTorch's errors, the lines after the first are a stack of ours and theirs.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string seconds(std::chrono::duration<double> duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", duration.count());
  return text;
}

}  // namespace

Executor::Executor(const Plan& plan, const ModelGraph& model,
                   const std::vector<std::uint32_t>& ranks, std::vector<Bodies> bodies,
                   Device& device, Workers& workers, const Cancellation& cancellation,
                   Outcome& outcome)
    : plan_(plan), model_(model), workers_(workers), outcome_(outcome), bodies_(std::move(bodies)) {
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    const std::uint32_t rank = ranks[local];
    const Program& program = plan.programs[plan.seat(rank).program];
    std::vector<Event*> events(program.tasks.size(), nullptr);
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      if (program.tasks[t].records) {
        events_.push_back(device.make_event());
        events[t] = events_.back().get();
      }
    }
    for (const Stream& stream : program.streams) {
      if (stream.tasks.count == 0) {
        continue;
      }
      auto lane =
          std::make_unique<Lane>(rank, local, program, stream, workers.stream(rank, stream.name),
                                 device.id(), cancellation);
      for (std::uint32_t t = stream.tasks.begin; t < stream.tasks.begin + stream.tasks.count; ++t) {
        const Task& task = program.tasks[t];
        const std::uint32_t first = lane->waits();
        for (const Wait& wait : program.waits_of(task)) {
          Event* const event = events[index(wait.task)];
          PIPER_CHECK(event != nullptr, "a task is waited for, but does not record");
          lane->add(Lane::Awaited{event, index(wait.task), wait.previous});
        }
        lane->add(Lane::Entry{bodies_[local][t].get(), events[t], first, task.waits.count,
                              stream.kind == Stream::Kind::compute && !is_communication(task.op)});
      }
      lanes_.push_back(std::move(lane));
    }
  }
}

Status Executor::run(std::int64_t step, double lr_factor, std::chrono::duration<double> timeout,
                     Spans* times) {
  PIPER_TRY(outcome_.status());
  if (times != nullptr) {
    times->clear();
    for (const Bodies& bodies : bodies_) {
      times->emplace_back(bodies.size());
    }
  }
  period_ = {period_.generation + 1, step, lr_factor};
  running_ = lanes_.size();
  const auto start = std::chrono::steady_clock::now();
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    const Lane::Recording recording{times == nullptr ? nullptr : (*times)[lane->local()].data(),
                                    start};
    lane->device_stream().enqueue([this, l = lane.get(), recording] { run_lane(*l, recording); });
  }

  // A failed run gets the same time once more to come to its end.
  using Clock = std::chrono::steady_clock;
  const auto look = std::min<std::chrono::duration<double>>(timeout / 4, std::chrono::seconds(1));
  std::unique_lock lock(mutex_);
  Clock::time_point moved = Clock::now();
  std::uint64_t last = progress();
  bool stuck = false;
  while (!done_.wait_for(lock, look, [&] { return running_ == 0; })) {
    const Clock::time_point now = Clock::now();
    if (const std::uint64_t current = progress(); current != last) {
      last = current;
      moved = now;
    } else if (now - moved >= timeout && !stuck) {
      stuck = true;
      moved = now;
      lock.unlock();
      outcome_.fail(board(timeout));
      lock.lock();
    } else if (now - moved >= timeout) {
      wedged_ = true;
      workers_.abandon();
      break;
    }
  }
  return outcome_.status();
}

void Executor::run_lane(Lane& lane, const Lane::Recording& recording) noexcept {
  try {
    lane.run(period_, recording);
  } catch (const Cancelled&) {
    // Whoever cancelled has said why.
  } catch (const TaskFailure& error) {
    outcome_.fail(failure(lane, error.code(), error.what()));
  } catch (const std::exception& error) {
    outcome_.fail(failure(lane, "run.failed", error.what()));
  } catch (...) {
    outcome_.fail(failure(lane, "run.failed", "an exception that is no std::exception"));
  }
  const std::lock_guard lock(mutex_);
  if (--running_ == 0) {
    done_.notify_one();
  }
}

Diagnostic Executor::failure(const Lane& lane, std::string code, const char* what) const {
  const Task& task = lane.program().tasks[lane.position().task.load(std::memory_order_relaxed)];
  return error(std::move(code), "rank " + std::to_string(lane.rank()) + " failed in " +
                                    describe(plan_, model_, task) + " (stream " +
                                    lane.stream().name + "): " + first_line(what));
}

Diagnostic Executor::board(std::chrono::duration<double> timeout) const {
  Diagnostic result = error("run.stuck", "nothing has moved for " + seconds(timeout));
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    const std::uint32_t task = lane->position().task.load(std::memory_order_relaxed);
    const std::uint32_t wait = lane->position().wait.load(std::memory_order_relaxed);
    if (task == Position::kIdle) {
      continue;
    }
    const Program& program = lane->program();
    const Task& at = program.tasks[task];
    std::string text = describe(plan_, model_, lane->rank(), program, at);
    if (wait != Position::kRunning) {
      const Task& awaited = program.tasks[wait];
      text += " waits for " + describe(plan_, model_, awaited) + " on stream " +
              program.streams[index(awaited.stream)].name;
    } else if (is_communication(at.op)) {
      text += " waits for its peers";
    } else {
      text += " has not returned";
    }
    result.note(text);
  }
  return result;
}

std::uint64_t Executor::progress() const {
  std::uint64_t sum = 0;
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    sum += lane->position().finished.load(std::memory_order_relaxed);
  }
  return sum;
}

double Executor::busy_seconds() const {
  double sum = 0;
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    sum += lane->busy_seconds();
  }
  return sum;
}

}  // namespace piper
