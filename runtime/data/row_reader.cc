#include "runtime/data/row_reader.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace piper {
namespace {

std::uint16_t to_bfloat16(double number) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

std::string in_quotes(std::string_view name) {
  return "'" + std::string(name) + "'";
}

// The name of a field, from what stands between its quotes.
std::string unescaped(std::string_view inside) {
  if (inside.find('\\') == std::string_view::npos) {
    return std::string(inside);
  }
  const auto json = nlohmann::json::parse('"' + std::string(inside) + '"', nullptr, false);
  return json.is_string() ? json.get<std::string>() : std::string(inside);
}

// False where it is beyond float64's range.
bool to_double(std::string_view text, double& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);  // 0 or a subnormal number is fine
  }
  return std::isfinite(value);
}

}  // namespace

std::string RowColumn::describe() const {
  std::string text = field.name + ' ' + std::string(to_string(field.dtype));
  for (const std::int64_t size : field.shape) {
    text += ' ' + std::to_string(size);
  }
  return text + (field.labels ? " labels" : "");
}

std::vector<RowColumn> columns_of(const Config& config, const ModelGraph& model) {
  std::vector<RowColumn> columns;
  for (Field& field : fields_of(model)) {
    RowColumn column;
    if (field.labels || field.name == "tokens") {
      column.limit = vocabulary(config, model);
    }
    column.field = std::move(field);
    columns.push_back(std::move(column));
  }
  return columns;
}

bool RowReader::wrong(std::string code, std::string problem, std::size_t offset) {
  fault_ = {std::move(code), std::move(problem), offset};
  return false;
}

bool RowReader::not_json(const JsonScanner& in) {
  return wrong("data.json", in.reason(), in.failed_at());
}

bool RowReader::read(std::string_view line, std::size_t only) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (only == kAll || only == i) {
      cells_[i].integers.clear();
      cells_[i].numbers.clear();
      cells_[i].found = false;
    }
  }
  JsonScanner in(line);
  if (in.peek() != '{') {
    const std::size_t offset = in.offset();
    const std::string_view kind = in.kind();
    return wrong(
        "data.json",
        "expected a JSON object, got " +
            (kind.empty() ? "'" + printable(line.substr(offset)) + "'" : std::string(kind)),
        offset);
  }
  if (!fields(in, only)) {
    return false;
  }
  if (only != kAll && cells_[only].found) {
    return true;
  }
  if (!in.at_end()) {
    in.unexpected("the end of the line after the object");
    return not_json(in);
  }
  return nothing_missing(line, only);
}

bool RowReader::fields(JsonScanner& in, std::size_t only) {
  in.accept('{');
  if (in.accept('}')) {
    return true;
  }
  do {
    std::string_view key;
    const std::size_t offset = (in.peek(), in.offset());
    if (!in.string(key) || !in.expect(':', "':' after the name of a field")) {
      return not_json(in);
    }
    const std::size_t column = column_named(key, only);
    if (column == columns_.size()) {
      if (!in.skip()) {
        return not_json(in);
      }
      continue;
    }
    if (cells_[column].found) {
      return wrong(
          "data.json",
          "expected one field " + in_quotes(columns_[column].field.name) + ", got a second",
          offset);
    }
    cells_[column].found = true;
    if (!cell(in, column, 0)) {
      return false;
    }
    if (only != kAll) {
      return true;
    }
  } while (in.accept(','));
  return in.expect('}', "',' or '}'") || not_json(in);
}

std::size_t RowReader::column_named(std::string_view key, std::size_t only) const {
  const bool plain = key.find('\\') == std::string_view::npos;
  const std::string name = plain ? std::string() : unescaped(key);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if ((only == kAll || only == i) && columns_[i].field.name == (plain ? key : name)) {
      return i;
    }
  }
  return columns_.size();
}

bool RowReader::cell(JsonScanner& in, std::size_t column, std::size_t depth) {
  const Field& field = columns_[column].field;
  const bool integers = columns_[column].is_integer();
  if (depth == field.shape.size()) {
    return integers ? integer(in, column) : number(in, column);
  }
  const std::size_t offset = (in.peek(), in.offset());
  if (!in.accept('[')) {
    if (in.kind().empty()) {
      in.unexpected("a value");
      return not_json(in);
    }
    return wrong("data.row_type",
                 in_quotes(field.name) + ": expected an array, got " + std::string(in.kind()),
                 offset);
  }
  const std::int64_t expected = field.shape[depth];
  const bool innermost = depth + 1 == field.shape.size();
  std::int64_t count = 0;
  if (!in.accept(']')) {
    do {
      const bool read = ++count > expected ? in.skip() || not_json(in)
                        : !innermost       ? cell(in, column, depth + 1)
                        : integers         ? integer(in, column)
                                           : number(in, column);
      if (!read) {
        return false;
      }
    } while (in.accept(','));
    if (!in.expect(']', "',' or ']'")) {
      return not_json(in);
    }
  }
  if (count != expected) {
    return wrong("data.row_length",
                 in_quotes(field.name) + ": expected " + std::to_string(expected) +
                     (depth == 0 ? " entries in a row, got " : " entries, got ") +
                     std::to_string(count),
                 offset);
  }
  return true;
}

bool RowReader::integer(JsonScanner& in, std::size_t column) {
  const RowColumn& to = columns_[column];
  if (std::int64_t plain = 0; in.plain_integer(plain)) {
    if (to.allows(plain)) {
      cells_[column].integers.push_back(plain);
      return true;
    }
    return out_of_range(to, std::to_string(plain), in.offset() - std::to_string(plain).size());
  }
  const std::string_view kind = in.kind();
  const std::size_t offset = in.offset();
  if (kind == "boolean" && to.field.dtype == DType::boolean) {
    const bool yes = in.peek() == 't';
    cells_[column].integers.push_back(yes ? 1 : 0);
    return in.literal(yes ? "true" : "false") || not_json(in);
  }
  if (kind != "number") {
    if (kind.empty()) {
      in.unexpected("a value");
      return not_json(in);
    }
    return wrong("data.row_type",
                 in_quotes(to.field.name) + ": expected an integer, got " + std::string(kind),
                 offset);
  }
  JsonScanner::Number number;
  if (!in.number(number)) {
    return not_json(in);
  }
  if (!number.integer) {
    return wrong("data.row_type",
                 in_quotes(to.field.name) + ": expected an integer, got " + printable(number.text),
                 offset);
  }
  if (!number.fits || !to.allows(number.value)) {
    return out_of_range(to, printable(number.text), offset);
  }
  cells_[column].integers.push_back(number.value);
  return true;
}

bool RowReader::out_of_range(const RowColumn& to, const std::string& got, std::size_t offset) {
  return wrong(
      "data.token_range",
      in_quotes(to.field.name) + ": expected " +
          (to.limit > 0 ? "ids from 0 to " + std::to_string(to.limit - 1) +
                              (to.field.labels ? " or " + std::to_string(kIgnoredLabel) : "")
                        : "an integer of at most 2^53") +
          ", got " + got,
      offset);
}

bool RowReader::number(JsonScanner& in, std::size_t column) {
  const std::string& name = columns_[column].field.name;
  const std::string_view kind = in.kind();
  const std::size_t offset = in.offset();
  if (kind != "number") {
    if (kind.empty()) {
      in.unexpected("a value");
      return not_json(in);
    }
    return wrong("data.row_type", in_quotes(name) + ": expected a number, got " + std::string(kind),
                 offset);
  }
  JsonScanner::Number number;
  double value = 0;
  if (!in.number(number)) {
    return not_json(in);
  }
  if (!to_double(number.text, value)) {
    return wrong("data.row_type",
                 in_quotes(name) + ": expected a number within float64's range, got " +
                     printable(number.text),
                 offset);
  }
  cells_[column].numbers.push_back(value);
  return true;
}

bool RowReader::nothing_missing(std::string_view line, std::size_t only) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (cells_[i].found || (only != kAll && only != i)) {
      continue;
    }
    std::vector<std::string> known;
    JsonScanner in(line);
    in.accept('{');
    std::string_view key;
    while (in.peek() == '"' && in.string(key) && in.accept(':') && in.skip()) {
      known.push_back(printable(unescaped(key)));
      in.accept(',');
    }
    const std::string& name = columns_[i].field.name;
    return wrong("data.missing_field", "the row has no " + in_quotes(name) + suggest(name, known),
                 0);
  }
  return true;
}

void RowReader::write(std::size_t column, std::byte* to) const {
  const Cells& cells = cells_[column];
  const auto put = [&](const auto& values, auto convert) {
    for (const auto value : values) {
      const auto converted = convert(value);
      std::memcpy(to, &converted, sizeof converted);
      to += sizeof converted;
    }
  };
  switch (columns_[column].field.dtype) {
    case DType::int64:
      return put(cells.integers, [](std::int64_t value) { return value; });
    case DType::boolean:
      return put(cells.integers, [](std::int64_t value) { return value != 0; });
    case DType::float64:
      return put(cells.numbers, [](double value) { return value; });
    case DType::float32:
      return put(cells.numbers, [](double value) { return static_cast<float>(value); });
    case DType::bfloat16:
      return put(cells.numbers, to_bfloat16);
  }
}

}  // namespace piper
