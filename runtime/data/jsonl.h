// Pre-tokenised rows: one JSON object a line, `{"tokens": [...], "labels": [...]}`.
//
// Each input of the model is a field under its name: an array, nested as the input has dimensions,
// or a number. Labels are already shifted; -100 is not counted. Further fields are ignored. A
// byte-order mark, CRLF and empty lines are tolerated. Every row is a document: round(n * fraction)
// of n rows are held out, in the order of a hash of their lines, at least one of two or more, and
// never all.
//
// Rows stay in their files: in memory is where they are (runtime/data/row_index.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/row_index.h"

namespace piper {

// The rows of a job's files that were looked at.
struct JsonlRows {
  std::vector<RowColumn> columns;
  std::vector<DataFile> files;             // in order
  std::vector<RowIndex> indexes;           // by file
  std::uint64_t bytes = 0, looked_at = 0;  // of all files

  std::uint64_t rows() const;
  bool complete() const { return bytes == looked_at; }
};

// Reads the rows of the job's files, or their indexes in the cache, and until `deadline` what is
// in no cache. A wrong row is an error with file, line and column. `progress`, where it is set,
// hears every now and then how far it is.
Expected<JsonlRows> look_at_rows(const Config& config, const ModelGraph& model,
                                 Clock::time_point deadline = Clock::time_point::max(),
                                 const std::function<void(const std::string&)>& progress = {});

Expected<std::unique_ptr<RowSource>> load_jsonl(const Config& config, const ModelGraph& model);

}  // namespace piper
