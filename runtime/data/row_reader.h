// Reads one line of a file of rows: `{"tokens": [...], "labels": [...]}`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/json_scanner.h"

namespace piper {

// An input of the model as a field of a row.
struct RowColumn {
  Field field;
  std::int64_t limit = 0;  // exclusive, of token ids and labels; 0 = none

  bool allows(std::int64_t value) const {
    return limit == 0 || (value >= 0 && value < limit) || (field.labels && value == kIgnoredLabel);
  }
  bool is_integer() const { return !is_floating(field.dtype); }
  // What a row must hold, in words that another program's index can be compared by; the limit is
  // no part of it.
  std::string describe() const;
};

// The inputs of the model; the limit is the vocabulary.
std::vector<RowColumn> columns_of(const Config& config, const ModelGraph& model);

// What is wrong with a line.
struct RowFault {
  std::string code, problem;
  std::size_t offset = 0;  // bytes from the start of the line
};

// Keeps its memory from line to line. One thread.
class RowReader {
 public:
  explicit RowReader(const std::vector<RowColumn>& columns)
      : columns_(columns), cells_(columns.size()) {}

  static constexpr std::size_t kAll = ~std::size_t{0};

  // Reads the fields of all columns, or of one; false: see fault(). All of the line is checked
  // where all columns are read.
  bool read(std::string_view line, std::size_t only = kAll);
  const RowFault& fault() const { return fault_; }

  // Of the last line, in row-major order: integers, or numbers where the column is not of integers.
  const std::vector<std::int64_t>& integers(std::size_t column) const {
    return cells_[column].integers;
  }
  // Writes a column's values in its dtype.
  void write(std::size_t column, std::byte* to) const;

 private:
  struct Cells {
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    bool found = false;
  };

  bool wrong(std::string code, std::string problem, std::size_t offset);
  bool not_json(const JsonScanner& in);
  bool fields(JsonScanner& in, std::size_t only);
  bool cell(JsonScanner& in, std::size_t column, std::size_t depth);
  bool integer(JsonScanner& in, std::size_t column);
  bool number(JsonScanner& in, std::size_t column);
  bool out_of_range(const RowColumn& to, const std::string& got, std::size_t offset);
  bool nothing_missing(std::string_view line, std::size_t only);
  std::size_t column_named(std::string_view key, std::size_t only) const;

  const std::vector<RowColumn>& columns_;
  std::vector<Cells> cells_;
  RowFault fault_;
};

}  // namespace piper
