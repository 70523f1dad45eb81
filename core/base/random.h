// Random numbers as functions of a key, so that neither order nor layout can change them:
// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#pragma once

#include <cstdint>

namespace piper {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

// Bits that depend on all of the given ones.
constexpr std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

// The n-th output of the generator of a key.
constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t n) {
  return mix(key + (n + 1) * kGolden);
}

}  // namespace piper
