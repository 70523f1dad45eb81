// Text as bytes: token ids 0 to 255, and an end-of-document token after each file.
//
// Held-out documents are whole files. They are chosen by a hash of the file's name, so that neither
// the seed nor the order of the paths moves a document from one part to the other: of n files the
// round(n * fraction) with the smallest hash, at least one of two or more, and never all. A single
// file is not divided: nothing is held out then.
//
// The documents of a part, in order, are one stream of tokens. Row r has the inputs from position r
// * seq_len on; its labels are the tokens one further. Rows cross documents, and so does attention.
// What remains at the end of the training part is less than a row and left out; in the held-out
// part it is a last row whose missing labels are not counted.
#pragma once

#include <memory>

#include "runtime/data/dataset.h"
#include "runtime/data/files.h"

namespace piper {

inline constexpr std::int64_t kEndOfDocument = 256;
inline constexpr std::int64_t kTextVocabulary = 257;

// Sizes alone: how the files of a job are divided, and how many rows that makes.
struct TextLayout {
  std::vector<SourceFile> files[2];  // by Part, in order; empty files left out
  std::int64_t rows[2] = {0, 0};

  std::int64_t tokens(Part part) const;
};
Expected<TextLayout> lay_out_text(const Config& config, const ModelGraph& model);

Expected<std::unique_ptr<RowSource>> load_text(const Config& config, const ModelGraph& model);

}  // namespace piper
