// The order in which rows are trained on: a function of the seed and the epoch alone.
#pragma once

#include <cstdint>
#include <vector>

namespace piper {

// A permutation of 0 .. rows - 1 (Fisher-Yates with splitmix64), the same on every machine.
std::vector<std::uint32_t> permutation(std::uint32_t rows, std::uint64_t seed, std::uint64_t epoch);

// The endless sequence of rows: epoch after epoch, each a permutation of all rows. A step's global
// batch is the next G of it, so a batch may hold the end of one epoch and the start of the next.
class RowSequence {
 public:
  RowSequence(std::int64_t rows, std::uint64_t seed);

  // The row at `position` (from 0). Keeps the epoch it last needed and the one before: near
  // positions are cheap.
  std::uint32_t at(std::int64_t position);

 private:
  struct Epoch {
    std::int64_t number = -1;
    std::vector<std::uint32_t> rows;
  };

  std::int64_t rows_;
  std::uint64_t seed_;
  Epoch epochs_[2];
};

}  // namespace piper
