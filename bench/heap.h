// Bytes that this process has from operator new, as malloc hands them out. Linking heap.cc
// replaces the operators; for one thread.
#pragma once

#include <cstddef>

namespace piper::bench {

std::size_t live_heap_bytes();
std::size_t peak_heap_bytes();  // since the last start
void start_peak();              // from what is live now

}  // namespace piper::bench
