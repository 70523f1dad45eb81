#include "runtime/data/order.h"

#include <limits>
#include <numeric>
#include <utility>

#include "core/base/diagnostic.h"
#include "core/base/random.h"

namespace piper {
namespace {

std::uint64_t next(std::uint64_t& state) {
  return mix(state += kGolden);
}

}  // namespace

std::vector<std::uint32_t> permutation(std::uint32_t rows, std::uint64_t seed,
                                       std::uint64_t epoch) {
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  std::uint64_t state = seed;
  state = next(state) ^ epoch;
  for (std::uint32_t i = rows; i > 1; --i) {
    // The bias of the modulus is below rows / 2^64.
    std::swap(order[i - 1], order[next(state) % i]);
  }
  return order;
}

RowSequence::RowSequence(std::int64_t rows, std::uint64_t seed) : rows_(rows), seed_(seed) {
  PIPER_CHECK(rows > 0 && rows <= std::numeric_limits<std::uint32_t>::max(),
              "rows of a data set: " + std::to_string(rows));
}

std::uint32_t RowSequence::at(std::int64_t position) {
  const std::int64_t number = position / rows_;
  Epoch& epoch = epochs_[number % 2];
  if (epoch.number != number) {
    epoch.number = number;
    epoch.rows =
        permutation(static_cast<std::uint32_t>(rows_), seed_, static_cast<std::uint64_t>(number));
  }
  return epoch.rows[static_cast<std::size_t>(position % rows_)];
}

}  // namespace piper
