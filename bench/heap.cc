#include "bench/heap.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace {
std::size_t live = 0, peak = 0;
}

namespace piper::bench {

std::size_t live_heap_bytes() {
  return live;
}
std::size_t peak_heap_bytes() {
  return peak;
}
void start_peak() {
  peak = live;
}

}  // namespace piper::bench

void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  live += malloc_usable_size(memory);
  peak = live > peak ? live : peak;
  return memory;
}
void operator delete(void* memory) noexcept {
  live -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}
