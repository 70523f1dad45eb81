// Who holds how many bytes: one account a rank, kept by the allocator of LibTorch's CPU tensors.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace piper {

enum class Holding : std::uint8_t { other, parameter, gradient, optimizer, activation, received };
inline constexpr std::size_t kHoldings = 6;

// Any thread may change an account; peaks are those of a rank's own order of events only as far as
// its threads are ordered.
class Account {
 public:
  std::int64_t live() const { return total_.load(std::memory_order_relaxed); }
  std::int64_t live(Holding holding) const { return of(holding).load(std::memory_order_relaxed); }
  std::int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(live(), std::memory_order_relaxed); }

  void add(Holding holding, std::int64_t bytes);
  void subtract(Holding holding, std::int64_t bytes);

 private:
  const std::atomic<std::int64_t>& of(Holding holding) const {
    return live_[static_cast<std::size_t>(holding)];
  }

  std::array<std::atomic<std::int64_t>, kHoldings> live_{};
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
  Charge(Account* account, Holding holding);
  explicit Charge(Holding holding);  // to the account that is charged now
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge();

 private:
  Account* account_;
  Holding holding_;
};

// For good: the account of a thread that belongs to a rank.
void charge_thread(Account* account, Holding holding);

}  // namespace piper
