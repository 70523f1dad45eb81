#include "core/lower/arena.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "core/lower/arena_packings.h"
#include "core/plan/plan.h"

namespace piper {
namespace {

constexpr double kEnough = 1.01;             // of what no packing can be below
constexpr std::size_t kMostSizes = 12;       // more are merged before anything is tried
constexpr std::size_t kMostForPairs = 4096;  // blocks: above, no packing that compares all pairs
constexpr std::int64_t kSearchSteps = 1 << 21;
constexpr std::int64_t kWidest = 24;

class Packer {
 public:
  explicit Packer(std::vector<ArenaBlock> blocks)
      : blocks_(std::move(blocks)), best_(rotate(blocks_)), least_(most_live(blocks_).bytes) {}

  // Blocks of almost one size share places better when they are of one, so sizes are rounded up to
  // fewer and fewer.
  Packing run() {
    std::set<std::int64_t> sizes;
    for (const ArenaBlock& block : blocks_) {
      sizes.insert(block.bytes);
    }
    while (!is_enough()) {
      if (sizes.size() <= kMostSizes) {
        try_all();
      }
      if (sizes.size() == 1) {
        break;
      }
      merge_closest(sizes);
    }
    return std::move(best_);
  }

 private:
  bool is_enough() const {
    return static_cast<double>(best_.size) <= kEnough * static_cast<double>(least_);
  }

  void try_all() {
    const Live live = most_live(blocks_);
    const auto improve = [&](Packing packing) {
      if (packing.size < best_.size) {
        best_ = std::move(packing);
      }
      return is_enough();
    };
    if (live.bytes >= best_.size || improve(rotate(blocks_))) {
      return;
    }
    if (blocks_.size() <= kMostForPairs) {
      const auto largest = [&](std::uint32_t b) { return std::pair{size(b), lifetime(b)}; };
      const auto longest = [&](std::uint32_t b) { return std::pair{lifetime(b), size(b)}; };
      if (improve(fit_first(blocks_, sorted(largest))) ||
          improve(fit_first(blocks_, sorted(longest)))) {
        return;
      }
    }
    const auto steps = static_cast<std::int64_t>(blocks_.size()) * live.blocks * live.blocks;
    const auto width = static_cast<std::size_t>(std::min(kWidest, kSearchSteps / steps));
    for (std::int64_t bytes = live.bytes; width > 0 && bytes < best_.size;
         bytes += std::max<std::int64_t>(1, live.bytes / 64 / kArenaAlignment) * kArenaAlignment) {
      if (std::optional<Packing> found = search(blocks_, bytes, width)) {
        improve(*std::move(found));
        return;
      }
    }
  }

  // Rounds the two sizes with the smallest ratio up to the larger one.
  void merge_closest(std::set<std::int64_t>& sizes) {
    auto small = sizes.begin();
    for (auto at = sizes.begin(); std::next(at) != sizes.end(); ++at) {
      if (static_cast<double>(*std::next(at)) * static_cast<double>(*small) <
          static_cast<double>(*std::next(small)) * static_cast<double>(*at)) {
        small = at;
      }
    }
    for (ArenaBlock& block : blocks_) {
      if (block.bytes == *small) {
        block.bytes = *std::next(small);
      }
    }
    sizes.erase(small);
  }

  std::int64_t size(std::uint32_t b) const { return blocks_[b].bytes; }
  std::uint64_t lifetime(std::uint32_t b) const { return blocks_[b].end - blocks_[b].begin; }

  template <typename Key>
  std::vector<std::uint32_t> sorted(Key key) const {
    std::vector<std::uint32_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return key(a) > key(b); });
    return order;
  }

  std::vector<ArenaBlock> blocks_;  // sizes rounded up
  Packing best_;
  std::int64_t least_;
};

}  // namespace

std::int64_t pack_arena(std::vector<ArenaBlock>& blocks) {
  std::vector<ArenaBlock> rounded = blocks;
  for (ArenaBlock& block : rounded) {
    block.bytes = (block.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  }
  const Packing packing = Packer(std::move(rounded)).run();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    blocks[b].offset = packing.offsets[b];
  }
  return packing.size;
}

}  // namespace piper
