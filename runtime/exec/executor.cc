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
    : plan_(plan),
      model_(model),
      workers_(workers),
      outcome_(outcome),
      bodies_(std::move(bodies)),
      lane_of_(ranks.size()),
      device_(device) {
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
        lane_of_[local].push_back(nullptr);
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
      lane_of_[local].push_back(lane.get());
      lanes_.push_back(std::move(lane));
    }
  }
}

Status Executor::start(std::int64_t step, double lr_factor, bool timed) {
  PIPER_TRY(outcome_.status());
  period_ = {period_.generation + 1, step, lr_factor, timed};
  running_ = lanes_.size();
  started_ = device_.now();
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    lane->device_stream().enqueue([this, l = lane.get()] { run_lane(*l); });
  }
  return {};
}

Status Executor::finish(std::chrono::duration<double> timeout) {
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

void Executor::run_lane(Lane& lane) noexcept {
  try {
    lane.launch(period_);
  } catch (...) {
    fail(lane, std::current_exception());
  }
  lane.device_stream().then([this, &lane](std::exception_ptr error) {
    if (error) {
      fail(lane, std::move(error));
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) {
      done_.notify_one();
    }
  });
}

void Executor::fail(const Lane& lane, std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const Cancelled&) {
    // Whoever cancelled has said why.
  } catch (const TaskFailure& failed) {
    outcome_.fail(failure(lane, failed.code(), failed.what()));
  } catch (const std::exception& failed) {
    outcome_.fail(failure(lane, "run.failed", failed.what()));
  } catch (...) {
    outcome_.fail(failure(lane, "run.failed", "an exception that is no std::exception"));
  }
}

Diagnostic Executor::failure(const Lane& lane, std::string code, const char* what) const {
  const std::uint64_t at = lane.progress().current() - lane.end_of(period_.generation - 1);
  const Task& task = lane.program().tasks_of(lane.stream())[at];
  return error(std::move(code), "rank " + std::to_string(lane.rank()) + " failed in " +
                                    describe(plan_, model_, task) + " (stream " +
                                    lane.stream().name + "): " + first_line(what));
}

const Task* Executor::awaited(const Lane& lane) const {
  const std::uint64_t at = lane.progress().current() - lane.end_of(period_.generation - 1);
  const Lane::Entry& entry = lane.entry(at);
  for (std::uint32_t w = entry.first_wait; w < entry.first_wait + entry.waits; ++w) {
    const Lane::Awaited& wait = lane.awaited()[w];
    const Task& task = lane.program().tasks[wait.task];
    const Lane& other = *lane_of_[lane.local()][index(task.stream)];
    const std::uint64_t needed = other.end_of(period_.generation - (wait.previous ? 2 : 1)) +
                                 wait.task - other.stream().tasks.begin;
    if (period_.generation > (wait.previous ? 1U : 0U) && other.progress().current() <= needed) {
      return &task;
    }
  }
  return nullptr;
}

Diagnostic Executor::board(std::chrono::duration<double> timeout) const {
  Diagnostic result = error("run.stuck", "nothing has moved for " + seconds(timeout));
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    const Progress& progress = lane->progress();
    if (progress.current() >= lane->end_of(period_.generation)) {
      continue;
    }
    const Program& program = lane->program();
    const std::uint64_t at = progress.current() - lane->end_of(period_.generation - 1);
    const Task& task = program.tasks_of(lane->stream())[at];
    std::string text = describe(plan_, model_, lane->rank(), program, task);
    if (const Task* const other = awaited(*lane); other != nullptr) {
      text += " waits for " + describe(plan_, model_, *other) + " on stream " +
              program.streams[index(other->stream)].name;
    } else if (is_communication(task.op)) {
      text += " waits for its peers";
    } else {
      const bool launched = progress.launched.load(std::memory_order_relaxed) > progress.current();
      text += launched ? " is not done" : " has not returned";
    }
    result.note(text);
  }
  return result;
}

std::uint64_t Executor::progress() const {
  std::uint64_t sum = 0;
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    sum += lane->progress().current();
  }
  return sum;
}

Spans Executor::times() const {
  Spans times;
  for (const Bodies& bodies : bodies_) {
    times.emplace_back(bodies.size());
  }
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    TimeSpan* at = times[lane->local()].data() + lane->stream().tasks.begin;
    for (const TimeSpan& span : lane->times()) {
      *at++ = {span.begin - started_, span.end - started_};
    }
  }
  return times;
}

std::vector<std::int64_t> Executor::busy() const {
  std::vector<std::int64_t> sums(bodies_.size());
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    sums[lane->local()] += static_cast<std::int64_t>(lane->busy());
  }
  return sums;
}

}  // namespace piper
