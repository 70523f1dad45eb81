#include "tests/support/plan_edit.h"

#include <algorithm>
#include <utility>

namespace piper::test {

ProgramEdit::ProgramEdit(Plan& plan, std::uint32_t program)
    : plan_(plan), program_(plan.programs[program]) {
  for (const Task& task : program_.tasks) {
    const auto list = [](auto span) { return std::vector(span.begin(), span.end()); };
    items_.push_back({task, list(program_.waits_of(task)), list(program_.reads_of(task)),
                      list(program_.writes_of(task)), list(program_.frees_of(task))});
  }
}

std::uint32_t ProgramEdit::find(Op op, std::uint32_t microbatch, std::uint32_t chunk) const {
  for (std::uint32_t t = 0; t < items_.size(); ++t) {
    const Task& task = items_[t].task;
    const std::uint32_t id = valid(task.bucket) ? index(task.bucket) : index(task.chunk);
    if (task.op == op && (microbatch == kAny || task.microbatch == microbatch) &&
        (chunk == kAny || id == chunk)) {
      return t;
    }
  }
  PIPER_CHECK(false, "no such task in the test's plan");
}

void ProgramEdit::renumber(const std::function<TaskId(std::uint32_t)>& number) {
  const auto move = [&](TaskId& id) {
    if (valid(id)) {
      id = number(index(id));
    }
  };
  for (Item& item : items_) {
    for (Wait& wait : item.waits) {
      move(wait.task);
    }
  }
  for (Buffer& buffer : program_.buffers) {
    move(buffer.alloc);
    move(buffer.free);
  }
}

void ProgramEdit::swap(std::uint32_t a, std::uint32_t b) {
  std::swap(items_[a], items_[b]);
  std::swap(items_[a].task.stream, items_[b].task.stream);
  renumber([&](std::uint32_t t) { return TaskId{t == a ? b : t == b ? a : t}; });
}

void ProgramEdit::erase(std::uint32_t task) {
  for (std::size_t s = 0; s < program_.streams.size(); ++s) {
    Range& range = program_.streams[s].tasks;
    if (s == index(items_[task].task.stream)) {
      --range.count;
    } else if (range.begin > task) {
      --range.begin;
    }
  }
  items_.erase(items_.begin() + task);
  for (Item& item : items_) {
    std::erase_if(item.waits, [&](const Wait& wait) { return index(wait.task) == task; });
  }
  renumber([&](std::uint32_t t) { return TaskId{t > task ? t - 1 : t}; });
}

void ProgramEdit::duplicate(std::uint32_t task) {
  renumber([&](std::uint32_t t) { return TaskId{t > task ? t + 1 : t}; });
  for (std::size_t s = 0; s < program_.streams.size(); ++s) {
    Range& range = program_.streams[s].tasks;
    if (s == index(items_[task].task.stream)) {
      ++range.count;
    } else if (range.begin > task) {
      ++range.begin;
    }
  }
  Item copy = items_[task];
  copy.task.node = NodeId{static_cast<std::uint32_t>(plan_.origin_of_node.size())};
  plan_.origin_of_node.push_back(0);
  items_.insert(items_.begin() + task + 1, std::move(copy));
}

void ProgramEdit::add_wait(std::uint32_t task, std::uint32_t awaited, bool previous) {
  items_[task].waits.push_back({TaskId{awaited}, previous});
  items_[awaited].task.records = true;
}

void ProgramEdit::store() {
  program_.tasks.clear();
  program_.waits.clear();
  program_.access.clear();
  const auto append = [](auto& pool, const auto& list) {
    const Range range{static_cast<std::uint32_t>(pool.size()),
                      static_cast<std::uint32_t>(list.size())};
    pool.insert(pool.end(), list.begin(), list.end());
    return range;
  };
  for (Item& item : items_) {
    item.task.waits = append(program_.waits, item.waits);
    item.task.reads = append(program_.access, item.reads);
    item.task.writes = append(program_.access, item.writes);
    item.task.frees = append(program_.access, item.frees);
    program_.tasks.push_back(item.task);
  }
}

}  // namespace piper::test
