#include "runtime/model/kernel_workspace.h"

#include <algorithm>

namespace piper {
namespace {

constexpr std::int64_t kBlockRows = 256, kBlockColumns = 64, kColumnBlocks = 16;
constexpr std::int64_t kDepth = 512, kLongDepth = 1024;
constexpr std::int64_t kSmallest = 4096;        // multiplications
constexpr std::int64_t kNarrow = 2, kWide = 4;  // bytes of bfloat16 and float32

std::int64_t round_up(std::int64_t size, std::int64_t to) {
  return (size + to - 1) / to * to;
}

}  // namespace

std::int64_t repacked_bytes(const RepackedProduct& product, std::int64_t rows) {
  const std::int64_t m = product.rows.at(rows), k = product.inner.at(rows),
                     n = product.columns.at(rows);
  if (static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) <= kSmallest) {
    return 0;
  }
  const std::int64_t most_deep = k > kLongDepth && !product.transposed ? kLongDepth : kDepth;
  const std::int64_t depth = round_up(std::min(k, most_deep), 32);
  const std::int64_t block_rows = std::min(m, kBlockRows);
  const bool sums_wait = product.transposed && k > kDepth;
  const std::int64_t columns =
      n <= kBlockColumns
          ? n
          : std::min(round_up(n, kBlockColumns), kBlockColumns * (sums_wait ? kColumnBlocks : 1));
  const std::int64_t stride = depth == kDepth ? depth + 32 : depth;  // a power of two is avoided
  const std::int64_t first = product.transposed ? kNarrow * block_rows * stride + 128 : 0;
  return first + kNarrow * depth * kBlockColumns + kWide * block_rows * columns + 1024;
}

std::vector<SizeFrom> kernel_workspace(const std::vector<RepackedProduct>& products) {
  const auto most = [&](std::int64_t rows) {
    std::int64_t bytes = 0;
    for (const RepackedProduct& product : products) {
      bytes = std::max(bytes, repacked_bytes(product, rows));
    }
    return bytes;
  };
  std::vector<SizeFrom> sizes;
  // Every block is whole by then, or has no rows in its size.
  for (std::int64_t rows = 1; rows <= kLongDepth + 1; ++rows) {
    const std::int64_t bytes = most(rows);
    if ((sizes.empty() ? 0 : sizes.back().bytes.at(rows)) == bytes) {
      continue;
    }
    if (sizes.empty() && rows > 1) {
      sizes.push_back({1, {0, 0}});
    }
    const std::int64_t growth = most(rows + 1) - bytes;
    const Affine line{growth, bytes - growth * rows};
    sizes.push_back({rows, growth < 0 || line.fixed < 0 ? Affine{0, bytes} : line});
  }
  return sizes;
}

}  // namespace piper
