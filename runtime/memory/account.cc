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
  Holding holding = Holding::other;
};
thread_local Charged charged;

// In front of each block: who pays for it, whichever thread frees it. One cache line, so that the
// block behind it is aligned as LibTorch expects.
struct alignas(64) Header {
  Account* account;
  std::int64_t bytes;
  Holding holding;
};
static_assert(sizeof(Header) == 64);

void release(void* data) {
  if (data == nullptr) {  // oneDNN frees empty scratchpads too
    return;
  }
  Header* const header = static_cast<Header*>(data) - 1;
  if (header->account != nullptr) {
    header->account->subtract(header->holding, header->bytes);
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
    *header = {charged.account, static_cast<std::int64_t>(bytes), charged.holding};
    if (header->account != nullptr) {
      header->account->add(header->holding, header->bytes);
    }
    return {header + 1, header + 1, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void Account::add(Holding holding, std::int64_t bytes) {
  live_[static_cast<std::size_t>(holding)].fetch_add(bytes, std::memory_order_relaxed);
  const std::int64_t now = total_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void Account::subtract(Holding holding, std::int64_t bytes) {
  live_[static_cast<std::size_t>(holding)].fetch_sub(bytes, std::memory_order_relaxed);
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

Charge::Charge(Account* account, Holding holding)
    : account_(charged.account), holding_(charged.holding) {
  charged = {account, holding};
}

Charge::Charge(Holding holding) : Charge(charged.account, holding) {}

Charge::~Charge() {
  charged = {account_, holding_};
}

void charge_thread(Account* account, Holding holding) {
  charged = {account, holding};
}

}  // namespace piper
