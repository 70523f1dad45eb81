#include "runtime/memory/account.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>

#include <mutex>
#include <utility>
#include <vector>

namespace piper {
namespace {

struct Charged {
  Account* account = nullptr;  // null: not counted
  MemoryKind kind = MemoryKind::workspace;
};
thread_local Charged charged;

// In front of each block: who pays for it, whichever thread frees it. One cache line, so that the
// block behind it is aligned as LibTorch expects.
struct alignas(64) Header {
  Account* account;
  std::int64_t bytes;
  MemoryKind kind;
};
static_assert(sizeof(Header) == 64);

void release(void* data) {
  if (data == nullptr) {  // oneDNN frees empty scratchpads too
    return;
  }
  Header* const header = static_cast<Header*>(data) - 1;
  if (header->account != nullptr) {
    header->account->subtract(header->kind, header->bytes);
  }
  c10::free_cpu(header);
}

// oneDNN uses raw_allocate and raw_deallocate: these need the context to be the data pointer, and
// raw_deleter().
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::kCPU};
    }
    auto* const header = static_cast<Header*>(c10::alloc_cpu(bytes + sizeof(Header)));
    *header = {charged.account, static_cast<std::int64_t>(bytes), charged.kind};
    if (header->account != nullptr) {
      header->account->add(header->kind, header->bytes);
    }
    return {header + 1, header + 1, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

void raise(std::atomic<std::int64_t>& peak, std::int64_t now) {
  std::int64_t known = peak.load(std::memory_order_relaxed);
  while (now > known && !peak.compare_exchange_weak(known, now, std::memory_order_relaxed)) {
  }
}

}  // namespace

void Account::add(MemoryKind kind, std::int64_t bytes) {
  const auto of = static_cast<std::size_t>(kind);
  raise(peak_of_[of], live_[of].fetch_add(bytes, std::memory_order_relaxed) + bytes);
  raise(peak_, total_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

void Account::reset_peak() {
  for (std::size_t of = 0; of < kMemoryKinds; ++of) {
    peak_of_[of].store(live_[of].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  peak_.store(live(), std::memory_order_relaxed);
}

void Account::subtract(MemoryKind kind, std::int64_t bytes) {
  live_[static_cast<std::size_t>(kind)].fetch_sub(bytes, std::memory_order_relaxed);
  total_.fetch_sub(bytes, std::memory_order_relaxed);
}

std::shared_ptr<Account> open_account() {
  static std::mutex mutex;
  static auto* const accounts = new std::vector<std::shared_ptr<Account>>();
  const std::lock_guard lock(mutex);
  for (const std::shared_ptr<Account>& account : *accounts) {
    if (account.use_count() == 1 && account->live() == 0) {
      account->reset_peak();
      return account;
    }
  }
  return accounts->emplace_back(std::make_shared<Account>());
}

void install_counting_allocator() {
  static const bool installed = [] {
    // Blocks of up to 32 MiB come from the heap, which keeps what is freed: fresh pages from the
    // kernel cost about 3 % of a training step.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    c10::SetAllocator(c10::kCPU, new CountingAllocator, /*priority=*/255);
    return true;
  }();
  (void)installed;
}

Charge::Charge(Account* account, MemoryKind kind) : account_(charged.account), kind_(charged.kind) {
  charged = {account, kind};
}

Charge::Charge(MemoryKind kind) : Charge(charged.account, kind) {}

Charge::~Charge() {
  charged = {account_, kind_};
}

void charge_thread(Account* account, MemoryKind kind) {
  charged = {account, kind};
}

}  // namespace piper
