// Which documents are held out: a share of the tokens, of whole documents where they allow it.
//
// Documents are taken in the order of a hash that knows neither the seed nor the folder, so neither
// another seed nor another place of the files moves a document from one part to the other. Each is
// taken that does not lead past 1.5 x the share, until the share is reached. Where that gives less
// than half of the share (one file; files that are large beside it), the tail of the largest other
// document is held out too.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace piper {

struct Document {
  std::uint64_t hash = 0;
  std::int64_t tokens = 0;
};

struct Division {
  std::vector<bool> held_out;  // by document
  // Of this document the last `tail` tokens are held out; 0 = of none.
  std::size_t cut = 0;
  std::int64_t tail = 0;
};

// `fraction`: share of the tokens. What is held out beside a tail fills rows of `row` tokens and
// one more to predict, as far as the document is long enough; at least one such row is left to
// train on, or nothing is held out.
Division divide(const std::vector<Document>& documents, double fraction, std::int64_t row);

// The same where each document is a row: of two or more at least one is held out and at least one
// is not. The numbers of those held out, ascending.
std::vector<std::uint32_t> divide_rows(const std::vector<std::uint64_t>& hashes, double fraction);

// How many of `rows` that are.
std::int64_t held_out_of_rows(std::int64_t rows, double fraction);

// Of bytes; the same on every machine. Bytes that differ little have hashes that differ much.
std::uint64_t mixed_hash(std::string_view bytes);

}  // namespace piper
