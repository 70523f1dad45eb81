// Pre-tokenised rows: one JSON object a line, `{"tokens": [...], "labels": [...]}`.
//
// Each input of the model is a field under its name: an array, nested as the input has dimensions,
// or a number. Labels are already shifted; -100 is not counted. Further fields are ignored. A
// byte-order mark, CRLF and empty lines are tolerated. Every row is a document: the last round(n *
// fraction) rows in the order of files and lines are held out, at least one of two or more, and
// never all.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "runtime/data/dataset.h"
#include "runtime/data/files.h"

namespace piper {

// Reads the rows of the job's files; stops after `most_bytes` of text. A wrong row is an error with
// file and line.
Expected<std::unique_ptr<RowSource>> load_jsonl(
    const Config& config, const ModelGraph& model,
    std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max());

}  // namespace piper
