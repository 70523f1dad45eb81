#include "runtime/data/held_out.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/base/random.h"

namespace piper {
namespace {

// Holds out the tail of the largest document of the training part, so that `held` tokens become
// `share`.
void cut_tail(const std::vector<Document>& documents, double share, std::int64_t row,
              std::int64_t held, std::int64_t all, Division& division) {
  std::size_t largest = documents.size();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (!division.held_out[i] &&
        (largest == documents.size() || documents[i].tokens > documents[largest].tokens)) {
      largest = i;
    }
  }
  if (largest == documents.size()) {
    return;
  }
  const std::int64_t most = (all - (row + 1) - 1) / row;  // rows, where one is left to train on
  const std::int64_t rows =
      std::min(std::max<std::int64_t>(std::llround(share / static_cast<double>(row)), 1), most);
  const std::int64_t tail = std::min(rows * row + 1 - held, documents[largest].tokens - 1);
  // A tail of one token has nothing to predict.
  if (rows >= 1 && tail >= 2) {
    division.cut = largest;
    division.tail = tail;
  }
}

}  // namespace

Division divide(const std::vector<Document>& documents, double fraction, std::int64_t row) {
  Division division;
  division.held_out.assign(documents.size(), false);
  if (fraction <= 0) {
    return division;
  }
  const std::int64_t all = std::accumulate(
      documents.begin(), documents.end(), std::int64_t{0},
      [](std::int64_t sum, const Document& document) { return sum + document.tokens; });
  const double share = fraction * static_cast<double>(all);
  std::vector<std::size_t> order(documents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(documents[a].hash, documents[a].tokens, a) <
           std::tuple(documents[b].hash, documents[b].tokens, b);
  });
  std::int64_t held = 0;
  for (const std::size_t i : order) {
    const std::int64_t with = held + documents[i].tokens;
    if (static_cast<double>(held) < share && static_cast<double>(with) <= 1.5 * share &&
        all - with >= row + 1) {
      division.held_out[i] = true;
      held = with;
    }
  }
  if (static_cast<double>(held) < 0.5 * share) {
    cut_tail(documents, share, row, held, all, division);
  }
  return division;
}

std::int64_t held_out_of_rows(std::int64_t rows, double fraction) {
  if (rows < 2 || fraction <= 0) {
    return 0;
  }
  return std::clamp<std::int64_t>(std::llround(static_cast<double>(rows) * fraction), 1, rows - 1);
}

std::vector<std::uint32_t> divide_rows(const std::vector<std::uint64_t>& hashes, double fraction) {
  const std::int64_t held = held_out_of_rows(static_cast<std::int64_t>(hashes.size()), fraction);
  if (held == 0) {
    return {};
  }
  std::vector<std::uint32_t> order(hashes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::nth_element(order.begin(), order.begin() + held, order.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     return std::pair(hashes[a], a) < std::pair(hashes[b], b);
                   });
  order.resize(static_cast<std::size_t>(held));
  order.shrink_to_fit();
  std::sort(order.begin(), order.end());
  return order;
}

std::uint64_t mixed_hash(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t hash = kGolden ^ bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return mix(hash ^ rest);
}

}  // namespace piper
