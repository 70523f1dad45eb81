// The hash of texts: of plans, of names, of what a cache is keyed by.
#pragma once

#include <cstdint>
#include <string_view>

namespace piper {

// FNV-1a, 64 bits.
class Fnv1a {
 public:
  constexpr void add(std::string_view bytes) {
    std::uint64_t state = state_;
    for (const char byte : bytes) {
      state = (state ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    state_ = state;
  }
  constexpr std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

constexpr std::uint64_t fnv1a(std::string_view bytes) {
  Fnv1a state;
  state.add(bytes);
  return state.value();
}

}  // namespace piper
