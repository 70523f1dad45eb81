// Text as bytes: token ids 0 to 255, and an end-of-document token after each file.
//
// A file is a document. What is held out is chosen by runtime/data/held_out.h from the names of the
// files, without their folders. The document whose tail is held out comes last of the training
// part, so that nothing follows the place where it is cut.
//
// The documents of a part, in order, are one stream of tokens. Row r has the inputs from position r
// * seq_len on; its labels are the tokens one further. Rows cross documents, and so does attention.
// What remains at the end of the training part is less than a row and left out; in the held-out
// part it is a last row whose missing labels are not counted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/files.h"

namespace piper {

inline constexpr std::int64_t kEndOfDocument = 256;
inline constexpr std::int64_t kTextVocabulary = 257;

// Tokens begin .. end - 1 of a document; its bytes and, as the last, the end of the document.
struct Extent {
  std::size_t file = 0;
  std::int64_t begin = 0, end = 0;

  std::int64_t tokens() const { return end - begin; }
};

// Sizes alone: how the files of a job are divided, and how many rows that makes.
struct TextLayout {
  std::vector<SourceFile> files;   // in order; empty files left out
  std::vector<Extent> extents[2];  // by Part
  std::int64_t rows[2] = {0, 0};

  std::int64_t tokens(Part part) const;
  // `text: 12 documents, 99000 tokens, 773 rows; held out: 1 document, 11359 tokens, 89 rows`.
  std::string describe() const;
};
Expected<TextLayout> lay_out_text(const Config& config, const ModelGraph& model);

Expected<std::unique_ptr<RowSource>> load_text(const Config& config, const ModelGraph& model);

}  // namespace piper
