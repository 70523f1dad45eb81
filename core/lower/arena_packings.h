// Ways to pack blocks that live for known times; pack_arena takes the best. All take blocks in the
// order of their begins, with sizes that are multiples of the alignment.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/lower/arena.h"

namespace piper {

struct Packing {
  std::vector<std::int64_t> offsets;  // by block
  std::int64_t size = 0;

  explicit Packing(std::size_t blocks) : offsets(blocks, 0) {}
  void place(std::size_t block, std::int64_t offset, std::int64_t bytes);
};

// What lives at once at most: bytes and blocks. No packing is smaller than `bytes`.
struct Live {
  std::int64_t bytes = 0, blocks = 0;
};
Live most_live(std::span<const ArenaBlock> blocks);

// Blocks of a size have places of their own, as many as live at once; each takes the one that is
// free for the longest, so that it hardly ever waits. Of one size, the best. O(n log n).
Packing rotate(std::span<const ArenaBlock> blocks);

// In `order`, each as low as those that live with it and came before allow. O(n^2).
Packing fit_first(std::span<const ArenaBlock> blocks, std::span<const std::uint32_t> order);

// In time, each at an end of a hole: a beam search for a packing of `size` bytes that keeps the
// `width` states with the largest holes. O(n x width x live^2).
std::optional<Packing> search(std::span<const ArenaBlock> blocks, std::int64_t size,
                              std::size_t width);

}  // namespace piper
