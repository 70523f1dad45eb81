// Changes a plan in one place, for tests that break it: tasks, waits and accesses as lists of their
// own, numbers kept right.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/plan/plan.h"

namespace piper::test {

// A program taken apart; store() puts it back.
class ProgramEdit {
 public:
  struct Item {
    Task task;
    std::vector<Wait> waits;
    std::vector<BufferId> reads, writes, frees;
  };

  ProgramEdit(Plan& plan, std::uint32_t program);
  ProgramEdit(const ProgramEdit&) = delete;
  ProgramEdit& operator=(const ProgramEdit&) = delete;
  ~ProgramEdit() { store(); }

  Item& operator[](std::uint32_t task) { return items_[task]; }
  const Item& operator[](std::uint32_t task) const { return items_[task]; }
  Program& program() { return program_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(items_.size()); }

  // The first task with this op; of this chunk (or bucket) and micro-batch where they are given.
  std::uint32_t find(Op op, std::uint32_t microbatch = kAny, std::uint32_t chunk = kAny) const;
  static constexpr std::uint32_t kAny = 0xffffffff;

  // On both: waits, allocations and frees follow the tasks to their new numbers.
  void swap(std::uint32_t a, std::uint32_t b);
  void erase(std::uint32_t task);
  // A copy right after it, with a node of its own.
  void duplicate(std::uint32_t task);
  void add_wait(std::uint32_t task, std::uint32_t awaited, bool previous = false);

 private:
  void store();
  void renumber(const std::function<TaskId(std::uint32_t)>& number);

  Plan& plan_;
  Program& program_;
  std::vector<Item> items_;
};

}  // namespace piper::test
