#include "runtime/data/text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace piper {
namespace {

// FNV-1a of the name, then mixed (the finaliser of splitmix64): names that differ in the last
// letter only would otherwise get neighbouring values.
std::uint64_t hash_of_name(const std::string& path) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : std::filesystem::path(path).filename().string()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

// By file: true where it is held out.
std::vector<bool> choose_held_out(const std::vector<SourceFile>& files, double fraction) {
  std::vector<bool> held_out(files.size(), false);
  if (files.size() < 2 || fraction <= 0) {
    return held_out;
  }
  const auto count =
      std::clamp<std::int64_t>(std::llround(static_cast<double>(files.size()) * fraction), 1,
                               static_cast<std::int64_t>(files.size()) - 1);
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < files.size(); ++i) {
    order.emplace_back(hash_of_name(files[i].path), i);
  }
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < count; ++i) {
    held_out[order[static_cast<std::size_t>(i)].second] = true;
  }
  return held_out;
}

// The documents of one part as one stream.
class Stream {
 public:
  Status open(const std::vector<SourceFile>& files, const Location& where) {
    for (const SourceFile& file : files) {
      PIPER_ASSIGN(FileBytes bytes, FileBytes::open(file, where));
      starts_.push_back(size_);
      size_ += static_cast<std::int64_t>(bytes.text().size()) + 1;
      documents_.push_back(std::move(bytes));
    }
    return {};
  }

  // Writes tokens begin .. begin + count - 1; `beyond` for those past the end.
  void read(std::int64_t begin, std::int64_t count, std::int64_t beyond, std::int64_t* to) const {
    auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
    auto document = static_cast<std::size_t>(after - starts_.begin()) - 1;
    for (; count > 0 && document < documents_.size(); ++document) {
      const std::string_view text = documents_[document].text();
      const std::int64_t offset = begin - starts_[document];
      const std::int64_t left = static_cast<std::int64_t>(text.size()) - offset;
      const std::int64_t taken = std::min(left, count);
      for (std::int64_t i = 0; i < taken; ++i) {
        *to++ = static_cast<unsigned char>(text[static_cast<std::size_t>(offset + i)]);
      }
      begin += taken;
      count -= taken;
      if (count > 0) {
        *to++ = kEndOfDocument;
        ++begin;
        --count;
      }
    }
    std::fill_n(to, count, beyond);
  }

 private:
  std::vector<FileBytes> documents_;
  std::vector<std::int64_t> starts_;  // of the documents
  std::int64_t size_ = 0;
};

class TextDataset final : public RowSource {
 public:
  TextDataset(TextLayout layout, std::int64_t seq_len)
      : layout_(std::move(layout)), seq_len_(seq_len) {}

  Status open(const Location& where) {
    for (int part = 0; part < 2; ++part) {
      PIPER_TRY(streams_[part].open(layout_.files[part], where));
    }
    return {};
  }

  std::int64_t rows(Part part) const override { return layout_.rows[static_cast<int>(part)]; }

  void read(Part part, std::int64_t row, const Field& field, std::byte* to) const override {
    std::int64_t* tokens = reinterpret_cast<std::int64_t*>(to);
    const std::int64_t begin = row * seq_len_ + (field.labels ? 1 : 0);
    streams_[static_cast<int>(part)].read(begin, seq_len_,
                                          field.labels ? kIgnoredLabel : kEndOfDocument, tokens);
  }

  std::string describe() const override {
    const auto part = [&](Part p) {
      const std::size_t documents = layout_.files[static_cast<int>(p)].size();
      return std::to_string(documents) + (documents == 1 ? " document, " : " documents, ") +
             std::to_string(layout_.tokens(p)) + " tokens, " + std::to_string(rows(p)) + " rows";
    };
    return "text: " + part(Part::training) +
           "; held out: " + (rows(Part::held_out) > 0 ? part(Part::held_out) : "nothing");
  }

 private:
  TextLayout layout_;
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
  for (const SourceFile& file : files[static_cast<int>(part)]) {
    sum += static_cast<std::int64_t>(file.bytes) + 1;
  }
  return sum;
}

Expected<TextLayout> lay_out_text(const Config& config, const ModelGraph& model) {
  PIPER_TRY(check_inputs(config, model));
  const Location where = config.where("training.dataset_path");
  PIPER_ASSIGN(std::vector<SourceFile> files, find_files(config.training.dataset_path, where));
  std::erase_if(files, [](const SourceFile& file) { return file.bytes == 0; });

  const std::vector<bool> held_out = choose_held_out(files, config.validation.fraction);
  TextLayout layout;
  for (std::size_t i = 0; i < files.size(); ++i) {
    layout.files[held_out[i] ? 1 : 0].push_back(files[i]);
  }
  const std::int64_t seq_len = config.training.seq_len;
  const std::int64_t tokens = layout.tokens(Part::training);
  layout.rows[0] = std::max<std::int64_t>((tokens - 1) / seq_len, 0);
  layout.rows[1] = (layout.tokens(Part::held_out) - 1 + seq_len - 1) / seq_len;
  if (layout.files[1].empty()) {
    layout.rows[1] = 0;
  }
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
  auto dataset = std::make_unique<TextDataset>(std::move(layout), config.training.seq_len);
  PIPER_TRY(dataset->open(config.where("training.dataset_path")));
  return dataset;
}

}  // namespace piper
