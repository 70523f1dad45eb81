#include "runtime/data/text.h"

#include <algorithm>
#include <filesystem>

#include "core/base/hash.h"
#include "core/base/random.h"
#include "runtime/data/data_file.h"
#include "runtime/data/held_out.h"

namespace piper {
namespace {

// Mixed: names that differ in the last letter only would otherwise get neighbouring values.
std::uint64_t hash_of_name(const std::string& path) {
  return mix(fnv1a(std::filesystem::path(path).filename().string()));
}

// The documents of one part as one stream.
class Stream {
 public:
  explicit Stream(std::vector<Extent> extents) : extents_(std::move(extents)) {
    for (const Extent& extent : extents_) {
      starts_.push_back(size_);
      size_ += extent.tokens();
    }
  }

  std::int64_t size() const { return size_; }

  // The number of the extent that holds the token at `position`.
  std::size_t at(std::int64_t position) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), position);
    return static_cast<std::size_t>(after - starts_.begin()) - 1;
  }
  const Extent& extent(std::size_t number) const { return extents_[number]; }

  // Writes tokens begin .. begin + count - 1; `beyond` for those past the end.
  Status read(const std::vector<DataFile>& files, std::int64_t begin, std::int64_t count,
              std::int64_t beyond, std::int64_t* to) const {
    std::string bytes;
    for (std::size_t i = at(begin); count > 0 && i < extents_.size(); ++i) {
      const DataFile& file = files[extents_[i].file];
      const auto end_of_document = static_cast<std::int64_t>(file.source().bytes);
      const std::int64_t from = extents_[i].begin + begin - starts_[i];
      const std::int64_t taken = std::min(extents_[i].end - from, count);
      bytes.resize(static_cast<std::size_t>(std::min(end_of_document - from, taken)));
      PIPER_TRY(file.read(static_cast<std::uint64_t>(from), bytes.size(), bytes.data()));
      to = std::transform(bytes.begin(), bytes.end(), to,
                          [](char c) { return static_cast<unsigned char>(c); });
      if (from + taken > end_of_document) {
        *to++ = kEndOfDocument;
      }
      begin += taken;
      count -= taken;
    }
    std::fill_n(to, count, beyond);
    return {};
  }

 private:
  std::vector<Extent> extents_;
  std::vector<std::int64_t> starts_;  // of the extents
  std::int64_t size_ = 0;
};

class TextDataset final : public RowSource {
 public:
  TextDataset(TextLayout layout, std::vector<DataFile> files, std::int64_t seq_len)
      : layout_(std::move(layout)),
        files_(std::move(files)),
        seq_len_(seq_len),
        streams_{Stream(layout_.extents[0]), Stream(layout_.extents[1])} {}

  std::int64_t rows(Part part) const override { return layout_.rows[static_cast<int>(part)]; }

  Status read(Part part, std::int64_t row, const Field& field, std::byte* to) const override {
    return streams_[static_cast<int>(part)].read(
        files_, row * seq_len_ + (field.labels ? 1 : 0), seq_len_,
        field.labels ? kIgnoredLabel : kEndOfDocument, reinterpret_cast<std::int64_t*>(to));
  }

  std::int64_t counted_labels(Part part, std::int64_t row) const override {
    return std::clamp<std::int64_t>(streams_[static_cast<int>(part)].size() - row * seq_len_ - 1, 0,
                                    seq_len_);
  }

  Location place_of(Part part, std::int64_t row) const override {
    const Stream& stream = streams_[static_cast<int>(part)];
    return {layout_.files[stream.extent(stream.at(row * seq_len_)).file].path, 0, 0};
  }

  std::string describe() const override { return layout_.describe(); }

 private:
  TextLayout layout_;
  std::vector<DataFile> files_;
  std::int64_t seq_len_;
  Stream streams_[2];  // by Part
};

// Text has tokens and labels, each [rows, seq_len] of int64.
Status check_inputs(const Config& config, const ModelGraph& model) {
  const Location where = config.where("training.dataset");
  for (const Field& field : fields_of(model)) {
    if (!field.labels && field.name != "tokens") {
      return fail(error("data.input",
                        "the model has an input '" + field.name +
                            "', and text has tokens and labels alone; dataset = \"jsonl\" delivers "
                            "any input",
                        where));
    }
    if (field.dtype != DType::int64 ||
        field.shape != std::vector<std::int64_t>{config.training.seq_len}) {
      return fail(error("data.input",
                        "the model's input '" + field.name + "' is not int64 [rows, seq_len = " +
                            std::to_string(config.training.seq_len) + "], as text delivers it",
                        where));
    }
  }
  const std::int64_t known = vocabulary(config, model);
  if (known > 0 && known < kTextVocabulary) {
    return fail(error("data.vocabulary",
                      "text needs a vocabulary of at least 257 (256 bytes and end of document), "
                      "the model has " +
                          std::to_string(known),
                      config.where("model.vocab")));
  }
  return {};
}

}  // namespace

std::int64_t TextLayout::tokens(Part part) const {
  std::int64_t sum = 0;
  for (const Extent& extent : extents[static_cast<int>(part)]) {
    sum += extent.tokens();
  }
  return sum;
}

std::string TextLayout::describe() const {
  std::int64_t documents[2] = {0, 0};  // that begin in the part
  std::string tail;
  for (int part = 0; part < 2; ++part) {
    for (const Extent& extent : extents[part]) {
      documents[part] += extent.begin == 0 ? 1 : 0;
      if (extent.begin > 0) {
        tail = "the tail of " + std::filesystem::path(files[extent.file].path).filename().string();
      }
    }
  }
  const auto sizes = [&](Part part) {
    return std::to_string(tokens(part)) + " tokens, " +
           std::to_string(rows[static_cast<int>(part)]) + " rows";
  };
  const auto counted = [](std::int64_t count) {
    return std::to_string(count) + (count == 1 ? " document" : " documents");
  };
  std::string held_out = documents[1] > 0 ? counted(documents[1]) : "";
  if (!tail.empty()) {
    held_out += (held_out.empty() ? "" : " and ") + tail;
  }
  return "text: " + counted(documents[0]) + ", " + sizes(Part::training) +
         "; held out: " + (held_out.empty() ? "nothing" : held_out + ", " + sizes(Part::held_out));
}

Expected<TextLayout> lay_out_text(const Config& config, const ModelGraph& model) {
  PIPER_TRY(check_inputs(config, model));
  const Location where = config.where("training.dataset_path");
  TextLayout layout;
  PIPER_ASSIGN(layout.files, find_files(config.training.dataset_path, where));
  std::erase_if(layout.files, [](const SourceFile& file) { return file.bytes == 0; });

  std::vector<Document> documents;
  for (const SourceFile& file : layout.files) {
    documents.push_back({hash_of_name(file.path), static_cast<std::int64_t>(file.bytes) + 1});
  }
  const std::int64_t seq_len = config.training.seq_len;
  const Division division = divide(documents, config.validation.fraction, seq_len);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (division.tail == 0 || division.cut != i) {
      layout.extents[division.held_out[i] ? 1 : 0].push_back({i, 0, documents[i].tokens});
    }
  }
  if (division.tail > 0) {
    const std::int64_t end = documents[division.cut].tokens;
    layout.extents[0].push_back({division.cut, 0, end - division.tail});
    layout.extents[1].push_back({division.cut, end - division.tail, end});
  }

  const std::int64_t tokens = layout.tokens(Part::training);
  layout.rows[0] = std::max<std::int64_t>((tokens - 1) / seq_len, 0);
  layout.rows[1] =
      (std::max<std::int64_t>(layout.tokens(Part::held_out) - 1, 0) + seq_len - 1) / seq_len;
  if (layout.rows[0] < 1) {
    return fail(error("data.too_short",
                      "the text to train on has " + std::to_string(tokens) +
                          " tokens, expected at least one sequence of seq_len + 1 = " +
                          std::to_string(seq_len + 1),
                      where));
  }
  return layout;
}

Expected<std::unique_ptr<RowSource>> load_text(const Config& config, const ModelGraph& model) {
  PIPER_ASSIGN(TextLayout layout, lay_out_text(config, model));
  PIPER_ASSIGN(std::vector<DataFile> files,
               open_files(layout.files, config.where("training.dataset_path")));
  return std::make_unique<TextDataset>(std::move(layout), std::move(files),
                                       config.training.seq_len);
}

}  // namespace piper
