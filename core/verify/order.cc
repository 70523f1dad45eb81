#include "core/verify/order.h"

#include <algorithm>

namespace piper {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;

}  // namespace

bool LocalOrder::build(const Program& program) {
  lanes_ = static_cast<std::uint32_t>(program.streams.size());
  begin_.clear();
  stream_.resize(program.tasks.size());
  for (std::uint32_t s = 0; s < lanes_; ++s) {
    const Range range = program.streams[s].tasks;
    begin_.push_back(range.begin);
    std::fill_n(stream_.begin() + range.begin, range.count, s);
  }
  begin_.push_back(static_cast<std::uint32_t>(program.tasks.size()));
  cycle_.clear();
  if (!run(program)) {
    find_cycle(program);
    return false;
  }
  look_back(program);
  return true;
}

// Runs the streams until each is at its end or waits. A stream waits for one task at a time, so a
// list through the streams holds who waits for what.
bool LocalOrder::run(const Program& program) {
  const std::size_t tasks = program.tasks.size();
  clock_.resize(tasks * lanes_);
  sequence_.clear();
  waiting_.assign(tasks, kNobody);
  next_.assign(lanes_, kNobody);
  head_.assign(begin_.begin(), begin_.end() - 1);
  runnable_.clear();
  for (std::uint32_t s = lanes_; s > 0; --s) {
    runnable_.push_back(s - 1);
  }
  while (!runnable_.empty()) {
    const std::uint32_t s = runnable_.back();
    runnable_.pop_back();
    bool is_blocked = false;
    while (!is_blocked && head_[s] < begin_[s + 1]) {
      const std::uint32_t t = head_[s];
      std::uint32_t* const row = clock_.data() + std::size_t{t} * lanes_;
      if (t == begin_[s]) {
        std::fill_n(row, lanes_, 0);
      } else {
        std::copy_n(row - lanes_, lanes_, row);
      }
      row[s] = t - begin_[s];
      for (const Wait& wait : program.waits_of(program.tasks[t])) {
        if (wait.previous) {
          continue;
        }
        const std::uint32_t u = index(wait.task);
        const std::uint32_t other = stream_[u];
        if (head_[other] <= u) {
          next_[s] = waiting_[u];
          waiting_[u] = s;
          is_blocked = true;
          break;
        }
        const std::uint32_t* const theirs = clock_.data() + std::size_t{u} * lanes_;
        for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
          row[lane] = std::max(row[lane], theirs[lane]);
        }
        row[other] = std::max(row[other], u - begin_[other] + 1);
      }
      if (!is_blocked) {
        sequence_.push_back(t);
        ++head_[s];
        for (std::uint32_t woken = waiting_[t]; woken != kNobody; woken = next_[woken]) {
          runnable_.push_back(woken);
        }
      }
    }
  }
  return sequence_.size() == tasks;
}

// From a blocked stream, to the stream of the task it waits for, until one comes again.
void LocalOrder::find_cycle(const Program& program) {
  std::uint32_t s = 0;
  while (head_[s] == begin_[s + 1]) {
    ++s;
  }
  std::vector<std::uint32_t> path;  // streams
  std::vector<std::uint32_t> tasks;
  while (std::find(path.begin(), path.end(), s) == path.end()) {
    path.push_back(s);
    const std::uint32_t t = head_[s];
    for (const Wait& wait : program.waits_of(program.tasks[t])) {
      const std::uint32_t u = index(wait.task);
      if (!wait.previous && head_[stream_[u]] <= u) {
        s = stream_[u];
        break;
      }
    }
  }
  for (auto from = std::find(path.begin(), path.end(), s); from != path.end(); ++from) {
    cycle_.push_back(head_[*from]);
  }
}

void LocalOrder::look_back(const Program& program) {
  previous_.resize(clock_.size());
  // The clock after `t`, joined into `row`.
  const auto join = [this](std::uint32_t* row, std::uint32_t t) {
    const std::uint32_t* const theirs = clock_.data() + std::size_t{t} * lanes_;
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
      row[lane] = std::max(row[lane], theirs[lane]);
    }
    row[stream_[t]] = std::max(row[stream_[t]], position(t) + 1);
  };
  for (const std::uint32_t t : sequence_) {
    std::uint32_t* const row = previous_.data() + std::size_t{t} * lanes_;
    const std::uint32_t s = stream_[t];
    if (t == begin_[s]) {
      std::fill_n(row, lanes_, 0);
      join(row, begin_[s + 1] - 1);
    } else {
      std::copy_n(row - lanes_, lanes_, row);
    }
    for (const Wait& wait : program.waits_of(program.tasks[t])) {
      if (wait.previous) {
        join(row, index(wait.task));
        continue;
      }
      const std::uint32_t* const theirs = previous_.data() + std::size_t{index(wait.task)} * lanes_;
      for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
        row[lane] = std::max(row[lane], theirs[lane]);
      }
    }
  }
}

void AccessIndex::build(const Program& program, const LocalOrder& order) {
  begin_.assign(program.buffers.size() + 1, 0);
  for (const Task& task : program.tasks) {
    for (const BufferId id : program.reads_of(task)) {
      ++begin_[index(id) + 1];
    }
    for (const BufferId id : program.writes_of(task)) {
      ++begin_[index(id) + 1];
    }
  }
  for (std::size_t i = 1; i < begin_.size(); ++i) {
    begin_[i] += begin_[i - 1];
  }
  accesses_.resize(begin_.back());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (const std::uint32_t t : order.sequence()) {
    const Task& task = program.tasks[t];
    for (const BufferId id : program.reads_of(task)) {
      accesses_[next[index(id)]++] = {t, 0};
    }
    for (const BufferId id : program.writes_of(task)) {
      accesses_[next[index(id)]++] = {t, 1};
    }
  }
}

}  // namespace piper
