// Where the rows of a file of JSON lines are, and what was seen when all of them were read: enough
// to find, count and check rows without reading the file again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "runtime/data/data_file.h"
#include "runtime/data/row_reader.h"

namespace piper {

struct RowIndex {
  // From line `row + lines + 1` on, `lines` lines before a row were empty.
  struct Gap {
    std::uint64_t row = 0, lines = 0;
  };
  struct Range {
    std::int64_t least, most;  // of the counted integers of a column; least > most: none
  };

  std::uint64_t bytes = 0;             // of the file, that were looked at
  std::vector<std::uint64_t> offsets;  // by row: where its line begins
  std::vector<std::uint64_t> hashes;   // by row: of its line, without white space at its ends
  std::vector<std::uint32_t> counted;  // by row: labels that are counted
  std::vector<Gap> gaps;
  std::vector<Range> ranges;  // by column
  // Rows whose counted labels, at least two, are the tokens of the same place.
  std::uint64_t unshifted = 0, first_unshifted = 0;

  std::size_t rows() const { return offsets.size(); }
  // From 1.
  std::uint32_t line(std::size_t row) const;
  // How many bytes of the file a row's line takes, with what is empty after it.
  std::uint64_t length(std::size_t row) const {
    return (row + 1 < offsets.size() ? offsets[row + 1] : bytes) - offsets[row];
  }
};

using Clock = std::chrono::steady_clock;

// Reads the rows of a file to its end, or until `deadline`: `bytes` says how far it came. A wrong
// row is an error with file, line and column. `looked`, where it is set, hears of bytes that were
// looked at, some megabytes at a time.
Expected<RowIndex> index_rows(const DataFile& file, const std::vector<RowColumn>& columns,
                              Clock::time_point deadline,
                              const std::function<void(std::uint64_t bytes)>& looked);

// Whether every id that the index has seen is below the columns' limits.
bool within_limits(const RowIndex& index, const std::vector<RowColumn>& columns);

// The error of a row that cannot be read.
Diagnostic wrong_row(const DataFile& file, std::uint32_t number, std::string_view line,
                     const RowFault& fault);

}  // namespace piper
