// A computation that sleeps ([emulate]): it waits, releases and hands on buffers as the real one
// does. What it hands on is zero; parameters get no gradient.
#pragma once

#include <cstdint>

#include "runtime/tasks/site.h"

namespace piper {

// From its start the task takes `nanoseconds`.
MadeTask make_emulated(const Site& site, std::uint64_t nanoseconds);

}  // namespace piper
