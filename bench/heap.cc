#include "bench/heap.h"

#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
bool counting = false;  // it costs time
std::int64_t live = 0, peak = 0;
}  // namespace

namespace piper::bench {

void start_heap() {
  counting = true;
  live = peak = 0;
}
std::int64_t peak_heap_bytes() {
  return peak;
}

}  // namespace piper::bench

void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  if (counting) {
    live += static_cast<std::int64_t>(malloc_usable_size(memory));
    peak = live > peak ? live : peak;
  }
  return memory;
}
void operator delete(void* memory) noexcept {
  if (counting) {
    live -= static_cast<std::int64_t>(malloc_usable_size(memory));
  }
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}
