// Random numbers as functions of a key, so that neither order nor layout can change them.
#pragma once

#include <cstdint>
#include <string_view>

namespace piper {

// splitmix64 (Steele, Lea and Flood 2014): the n-th output of a generator is a function of its key
// and n alone.
constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t n) {
  std::uint64_t bits = key + (n + 1) * 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

// A key from a text: FNV-1a.
constexpr std::uint64_t random_key(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char c : text) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return value;
}

}  // namespace piper
