// Bytes that this process takes from operator new, as malloc hands them out. Linking heap.cc
// replaces the operators; for one thread.
#pragma once

#include <cstdint>

namespace piper::bench {

void start_heap();               // counts from here on
std::int64_t peak_heap_bytes();  // the most at once, above what there was at the start

}  // namespace piper::bench
