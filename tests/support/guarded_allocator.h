// Memory that ends where a page ends, with a page behind it that nobody may touch: a kernel of
// LibTorch, which no sanitizer sees into, is stopped at the first byte beyond its tensor.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>

namespace piper::test {

class GuardedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::kCPU};
    }
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = (bytes + page - 1) / page * page;
    void* const base =
        mmap(nullptr, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(static_cast<char*>(base) + usable, page, PROT_NONE) != 0) {
      throw std::bad_alloc();
    }
    // As aligned as its size, which is that of its elements or more.
    void* const data = static_cast<char*>(base) + usable - bytes;
    const std::lock_guard lock(mutex());
    blocks()[data] = {base, usable + page};
    return {data, data, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  struct Block {
    void* base;
    std::size_t bytes;
  };
  // By their data. oneDNN asks for memory that its address alone gives back.
  static std::map<void*, Block>& blocks() {
    static std::map<void*, Block> all;
    return all;
  }
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static void release(void* data) {
    if (data == nullptr) {
      return;
    }
    const std::lock_guard lock(mutex());
    const auto block = blocks().extract(data);
    munmap(block.mapped().base, block.mapped().bytes);
  }
};

// While it lives, CPU tensors of this process are guarded.
class GuardedTensors {
 public:
  GuardedTensors() : outer_(c10::GetCPUAllocator()) {
    static GuardedAllocator guarded;  // tensors may outlive this
    c10::SetCPUAllocator(&guarded, kPriority);
  }
  ~GuardedTensors() { c10::SetCPUAllocator(outer_, kPriority); }
  GuardedTensors(const GuardedTensors&) = delete;
  GuardedTensors& operator=(const GuardedTensors&) = delete;

 private:
  static constexpr std::uint8_t kPriority = 255;
  c10::Allocator* outer_;
};

}  // namespace piper::test
