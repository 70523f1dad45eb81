// Where blocks that live for known times go in one arena, so that it is hardly larger than the most
// that lives at once.
#pragma once

#include <cstdint>
#include <vector>

namespace piper {

struct ArenaBlock {
  std::int64_t bytes = 0;
  std::uint64_t begin = 0, end = 0;  // when it lives: from `begin` up to `end`
  std::int64_t offset = 0;
};

// Sets the offsets of blocks, which come in the order of their begins, and returns the arena's
// size. Blocks that live at one time do not overlap; offsets and the size are multiples of
// kArenaAlignment.
//
// Blocks of one size take exactly the most that lives at once. Others are a packing that is hard in
// general (dynamic storage allocation), and where sizes alternate none may be that small; the best
// of a few is taken (arena_packings.h).
std::int64_t pack_arena(std::vector<ArenaBlock>& blocks);

}  // namespace piper
