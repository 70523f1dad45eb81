// Who holds how many bytes: one account a rank, kept by the allocator of LibTorch's CPU tensors.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/plan/plan.h"

namespace piper {

// Any thread may change an account; peaks are those of a rank's own order of events only as far as
// its threads are ordered.
class Account {
 public:
  std::int64_t live() const { return total_.load(std::memory_order_relaxed); }
  std::int64_t live(MemoryKind kind) const { return of(kind).load(std::memory_order_relaxed); }
  std::int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  // Each kind's own, which need not be at the same time.
  std::int64_t peak(MemoryKind kind) const {
    return peak_of_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }
  void reset_peak();

  void add(MemoryKind kind, std::int64_t bytes);
  void subtract(MemoryKind kind, std::int64_t bytes);

 private:
  const std::atomic<std::int64_t>& of(MemoryKind kind) const {
    return live_[static_cast<std::size_t>(kind)];
  }

  std::array<std::atomic<std::int64_t>, kMemoryKinds> live_{}, peak_of_{};
  std::atomic<std::int64_t> total_{0}, peak_{0};
};

// An account that nobody else uses. Caches may free a block long after its rank has gone, so
// accounts are never destroyed; one without blocks or holder is used again.
std::shared_ptr<Account> open_account();

// Makes LibTorch's CPU tensors charge accounts. Once a process, before the first counted tensor; a
// second call does nothing.
void install_counting_allocator();

// While it lives, what this thread allocates is charged to `account`. Scopes nest.
class Charge {
 public:
  Charge(Account* account, MemoryKind kind);
  explicit Charge(MemoryKind kind);  // to the account that is charged now
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge();

 private:
  Account* account_;
  MemoryKind kind_;
};

// For good: the account of a thread that belongs to a rank.
void charge_thread(Account* account, MemoryKind kind);

}  // namespace piper
