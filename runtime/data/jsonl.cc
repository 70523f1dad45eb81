#include "runtime/data/jsonl.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

namespace piper {
namespace {

using Json = nlohmann::json;

// The largest integer up to which every integer is a float64.
constexpr double kExact = 9007199254740992.0;

// A field of all rows: integers, or numbers.
struct Column {
  Field field;
  std::int64_t limit = 0;  // exclusive, of token ids and labels; 0 = none
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;

  bool is_integer() const { return !is_floating(field.dtype); }
};

std::uint16_t to_bfloat16(double number) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

std::string in_quotes(const std::string& name) {
  return "'" + name + "'";
}

// Reads one value of a column; what is wrong with it is in `problem` and `code`.
class Cell {
 public:
  Cell(Column& column, std::string& code, std::string& problem)
      : column_(column), code_(code), problem_(problem) {}

  bool read(const Json& json, std::size_t depth = 0) {
    const std::vector<std::int64_t>& shape = column_.field.shape;
    if (depth == shape.size()) {
      return element(json);
    }
    if (!json.is_array()) {
      return wrong("data.row_type",
                   in_quotes(column_.field.name) + ": expected an array, got " + json.type_name());
    }
    const auto expected = shape[depth];
    if (static_cast<std::int64_t>(json.size()) != expected) {
      return wrong("data.row_length",
                   in_quotes(column_.field.name) + ": expected " + std::to_string(expected) +
                       (depth == 0 ? " entries in a row, got " : " entries, got ") +
                       std::to_string(json.size()));
    }
    return std::all_of(json.begin(), json.end(),
                       [&](const Json& entry) { return read(entry, depth + 1); });
  }

 private:
  bool wrong(std::string code, std::string problem) {
    code_ = std::move(code);
    problem_ = std::move(problem);
    return false;
  }

  bool element(const Json& json) {
    if (!column_.is_integer()) {
      if (!json.is_number()) {
        return wrong("data.row_type", in_quotes(column_.field.name) + ": expected a number, got " +
                                          json.type_name());
      }
      column_.numbers.push_back(json.get<double>());
      return true;
    }
    if (column_.field.dtype == DType::boolean && json.is_boolean()) {
      column_.integers.push_back(json.get<bool>() ? 1 : 0);
      return true;
    }
    if (!json.is_number_integer()) {
      return wrong("data.row_type", in_quotes(column_.field.name) + ": expected an integer, got " +
                                        (json.is_number() ? json.dump() : json.type_name()));
    }
    const bool fits = !json.is_number_unsigned() ||
                      json.get<std::uint64_t>() <= static_cast<std::uint64_t>(kExact);
    const std::int64_t value = fits ? json.get<std::int64_t>() : 0;
    const bool ignored = column_.field.labels && value == kIgnoredLabel;
    if (!fits || (column_.limit > 0 && !ignored && (value < 0 || value >= column_.limit))) {
      return wrong("data.token_range",
                   in_quotes(column_.field.name) + ": expected " +
                       (column_.limit > 0 ? "ids from 0 to " + std::to_string(column_.limit - 1) +
                                                (column_.field.labels ? " or -100" : "")
                                          : "an integer of at most 2^53") +
                       ", got " + json.dump());
    }
    column_.integers.push_back(value);
    return true;
  }

  Column& column_;
  std::string& code_;
  std::string& problem_;
};

class JsonlDataset final : public RowSource {
 public:
  explicit JsonlDataset(std::vector<Column> columns) : columns_(std::move(columns)) {}

  Status add(std::string_view line, const Location& where) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) {
      return fail(
          error("data.json", "expected one JSON object on this line, got " + start(line), where));
    }
    if (!json.is_object()) {
      return fail(error("data.json", std::string("expected a JSON object, got ") + json.type_name(),
                        where));
    }
    for (Column& column : columns_) {
      const auto at = json.find(column.field.name);
      if (at == json.end()) {
        std::vector<std::string> known;
        for (const auto& item : json.items()) {
          known.push_back(item.key());
        }
        return fail(error(
            "data.missing_field",
            "the row has no " + in_quotes(column.field.name) + suggest(column.field.name, known),
            where));
      }
      std::string code, problem;
      if (!Cell(column, code, problem).read(*at)) {
        return fail(error(std::move(code), std::move(problem), where));
      }
    }
    ++count_;
    return {};
  }

  void hold_out(double fraction) {
    if (count_ >= 2 && fraction > 0) {
      held_out_ = std::clamp<std::int64_t>(std::llround(static_cast<double>(count_) * fraction), 1,
                                           count_ - 1);
    }
  }

  std::int64_t rows(Part part) const override {
    return part == Part::training ? count_ - held_out_ : held_out_;
  }

  void read(Part part, std::int64_t row, const Field& field, std::byte* to) const override {
    const Column& column = *std::find_if(
        columns_.begin(), columns_.end(),
        [&](const Column& candidate) { return candidate.field.value == field.value; });
    if (part == Part::held_out) {
      row += count_ - held_out_;
    }
    const auto elements = static_cast<std::size_t>(field.elements());
    const std::size_t begin = static_cast<std::size_t>(row) * elements;
    const auto write = [&](auto convert) {
      for (std::size_t i = 0; i < elements; ++i) {
        const auto value = convert(begin + i);
        std::memcpy(to + i * sizeof value, &value, sizeof value);
      }
    };
    switch (field.dtype) {
      case DType::int64:
        return write([&](std::size_t i) { return column.integers[i]; });
      case DType::boolean:
        return write([&](std::size_t i) { return column.integers[i] != 0; });
      case DType::float64:
        return write([&](std::size_t i) { return column.numbers[i]; });
      case DType::float32:
        return write([&](std::size_t i) { return static_cast<float>(column.numbers[i]); });
      case DType::bfloat16:
        return write([&](std::size_t i) { return to_bfloat16(column.numbers[i]); });
    }
  }

  std::string describe() const override {
    return "jsonl: " + std::to_string(rows(Part::training)) +
           " rows; held out: " + (held_out_ > 0 ? std::to_string(held_out_) + " rows" : "nothing");
  }

 private:
  static std::string start(std::string_view line) {
    constexpr std::size_t kShown = 40;
    return "'" + std::string(line.substr(0, kShown)) + (line.size() > kShown ? "...'" : "'");
  }

  std::vector<Column> columns_;
  std::int64_t count_ = 0, held_out_ = 0;
};

Expected<std::vector<Column>> columns_of(const Config& config, const ModelGraph& model) {
  std::vector<Column> columns;
  for (Field& field : fields_of(model)) {
    Column column;
    if (field.labels || field.name == "tokens") {
      column.limit = vocabulary(config, model);
    }
    column.field = std::move(field);
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

Expected<std::unique_ptr<RowSource>> load_jsonl(const Config& config, const ModelGraph& model,
                                                std::uint64_t most_bytes) {
  const Location where = config.where("training.dataset_path");
  PIPER_ASSIGN(const std::vector<SourceFile> files,
               find_files(config.training.dataset_path, where));
  PIPER_ASSIGN(std::vector<Column> columns, columns_of(config, model));
  auto dataset = std::make_unique<JsonlDataset>(std::move(columns));
  for (const SourceFile& file : files) {
    PIPER_ASSIGN(const FileBytes bytes, FileBytes::open(file, where));
    std::string_view text = bytes.text();
    if (text.starts_with("\xef\xbb\xbf")) {
      text.remove_prefix(3);
    }
    for (std::uint32_t number = 1; !text.empty() && most_bytes > 0; ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      most_bytes -= std::min<std::uint64_t>(most_bytes, end + 1);
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
        PIPER_TRY(dataset->add(line, {file.path, number, 0}));
      }
    }
  }
  dataset->hold_out(config.validation.fraction);
  if (dataset->rows(Part::training) < 1) {
    return fail(
        error("data.too_short", "the files have no rows: expected one JSON object a line", where));
  }
  return dataset;
}

}  // namespace piper
