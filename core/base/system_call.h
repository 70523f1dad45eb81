// Calls of the system.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace piper {

// Calls again while a signal interrupts.
template <typename Call>
auto uninterrupted(Call call) -> decltype(call()) {
  for (;;) {
    if (const auto result = call(); result != -1 || errno != EINTR) {
      return result;
    }
  }
}

// Writes all of it, in one call where the system takes it whole; waits for a descriptor that would
// block. 0, or an errno.
int write_all(int descriptor, std::string_view bytes);

}  // namespace piper
