#include "core/ir/text_reader.h"

#include <algorithm>
#include <charconv>

namespace piper {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' ||
         c == '-';
}

std::uint32_t code_points(std::string_view text) {
  return static_cast<std::uint32_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  }));
}

// The rest of a line, cut to a length that fits in a message; control characters become '?'.
std::string excerpt(std::string_view rest) {
  rest = rest.substr(0, rest.find('\n'));
  if (rest.empty()) {
    return "the end of the line";
  }
  std::size_t length = std::min<std::size_t>(rest.size(), 24);
  while (length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xc0u) == 0x80u) {
    ++length;
  }
  std::string text = "'";
  for (const char c : rest.substr(0, length)) {
    text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return text + "'";
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::uint32_t TextReader::column_of(std::size_t position) const {
  return code_points(text_.substr(line_start_, position - line_start_)) + 1;
}

Location TextReader::here() const {
  return {source_, line_, column_of(token_)};
}

void TextReader::expected(std::string_view what) {
  if (ok()) {
    spaces();
    token_ = position_;
    const std::string got =
        position_ == text_.size() ? "the end of the text" : excerpt(text_.substr(position_));
    refuse("expected " + std::string(what) + ", got " + got);
  }
}

void TextReader::refuse(std::string message, std::string code) {
  if (ok()) {
    error_ = error(code.empty() ? code_ : std::move(code), std::move(message), here());
  }
}

void TextReader::spaces() {
  while (position_ < text_.size() && text_[position_] == ' ') {
    ++position_;
  }
}

bool TextReader::starts_with(std::string_view token) const {
  if (!text_.substr(position_).starts_with(token)) {
    return false;
  }
  const std::size_t end = position_ + token.size();
  return !is_word(token.back()) || end == text_.size() || !is_word(text_[end]);
}

bool TextReader::peek(std::string_view token) {
  if (!ok()) {
    return false;
  }
  spaces();
  return starts_with(token);
}

bool TextReader::accept(std::string_view token) {
  if (!peek(token)) {
    return false;
  }
  token_ = position_;
  position_ += token.size();
  return true;
}

bool TextReader::accept_sigil(char sigil) {
  if (!ok()) {
    return false;
  }
  spaces();
  if (position_ + 1 >= text_.size() || text_[position_] != sigil ||
      !is_digit(text_[position_ + 1])) {
    return false;
  }
  token_ = position_++;
  return true;
}

bool TextReader::at_number() {
  if (!ok()) {
    return false;
  }
  spaces();
  return position_ < text_.size() && is_digit(text_[position_]);
}

void TextReader::expect(std::string_view token) {
  if (!accept(token)) {
    expected("'" + std::string(token) + "'");
  }
}

void TextReader::skip_past(std::string_view token) {
  if (!ok()) {
    return;
  }
  const std::size_t line_end = std::min(text_.find('\n', position_), text_.size());
  const std::size_t at = text_.substr(0, line_end).find(token, position_);
  if (at == std::string_view::npos) {
    expected("'" + std::string(token) + "' on this line");
    return;
  }
  token_ = at;
  position_ = at + token.size();
}

bool TextReader::at_end_of_line() {
  if (!ok()) {
    return true;
  }
  spaces();
  return position_ == text_.size() || text_[position_] == '\n';
}

void TextReader::end_of_line() {
  if (!ok()) {
    return;
  }
  spaces();
  if (position_ == text_.size() || text_[position_] != '\n') {
    expected("the end of the line");
    return;
  }
  line_start_ = token_ = ++position_;
  ++line_;
}

std::string_view TextReader::word() {
  if (!ok()) {
    return {};
  }
  spaces();
  const std::size_t begin = position_;
  std::size_t end = begin;
  while (end < text_.size() && is_word(text_[end])) {
    ++end;
  }
  if (end == begin) {
    expected("a word");
    return {};
  }
  token_ = begin;
  position_ = end;
  return text_.substr(begin, end - begin);
}

std::string TextReader::quoted() {
  if (!accept("\"")) {
    expected("quoted text");
    return {};
  }
  std::string value;
  std::size_t at = position_;
  while (at < text_.size() && text_[at] != '"' && text_[at] != '\n') {
    char c = text_[at++];
    if (c == '\\') {
      const char escape = at < text_.size() ? text_[at++] : '\0';
      const int high = escape == 'x' && at + 1 < text_.size() ? hex_digit(text_[at]) : -1;
      const int low = high >= 0 ? hex_digit(text_[at + 1]) : -1;
      if (low >= 0) {
        c = static_cast<char>(high * 16 + low);
        at += 2;
      } else if (escape == 'n') {
        c = '\n';
      } else if (escape == 't') {
        c = '\t';
      } else if (escape == '"' || escape == '\\') {
        c = escape;
      } else {
        refuse("unknown escape in quoted text");
        return {};
      }
    }
    value += c;
  }
  if (at == text_.size() || text_[at] != '"') {
    refuse("quoted text does not end on its line");
    return {};
  }
  position_ = at + 1;
  return value;
}

std::int64_t TextReader::integer() {
  if (!ok()) {
    return 0;
  }
  spaces();
  std::int64_t value = 0;
  const char* const begin = text_.data() + position_;
  const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (problem != std::errc()) {
    expected(problem == std::errc::result_out_of_range ? "a number that fits in 64 bits"
                                                       : "a number");
    return 0;
  }
  token_ = position_;
  position_ += static_cast<std::size_t>(end - begin);
  return value;
}

std::uint32_t TextReader::number() {
  const std::int64_t value = integer();
  if (value < 0 || value >= index(none<NodeId>())) {
    refuse("expected a number from 0 to 4294967294, got " + std::to_string(value));
    return 0;
  }
  return static_cast<std::uint32_t>(value);
}

void TextReader::item(std::string_view what, std::size_t next) {
  const std::uint32_t id = number();
  if (ok() && id != next) {
    refuse("expected " + std::string(what) + " " + std::to_string(next) + ", got " +
           std::to_string(id));
  }
}

Affine TextReader::affine() {
  Affine value;
  if (!ok()) {
    return value;
  }
  spaces();
  if (position_ < text_.size() && text_[position_] == 'r') {
    token_ = position_++;
    value.per_row = 1;
  } else {
    const std::int64_t first = integer();
    if (!ok() || position_ == text_.size() || text_[position_] != 'r') {
      return {0, first};
    }
    ++position_;
    value.per_row = first;
  }
  if (ok() && position_ < text_.size() && text_[position_] == '+') {
    ++position_;
    value.fixed = integer();
  } else if (ok() && position_ < text_.size() && text_[position_] == '-') {
    value.fixed = integer();
  }
  return value;
}

Location TextReader::location() {
  Location where;
  if (!accept("at")) {
    return where;
  }
  where.file = quoted();
  if (accept(":")) {
    where.line = number();
  }
  if (accept(":")) {
    where.column = number();
  }
  return where;
}

void append_quoted(std::string& text, std::string_view value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  text += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n' || c == '\t') {
      text += c == '\n' ? "\\n" : "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15u];
    } else {
      text += c;
    }
  }
  text += '"';
}

void append_integer(std::string& text, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text.append(digits, end);
}

void append_affine(std::string& text, Affine value) {
  if (value.per_row == 0) {
    append_integer(text, value.fixed);
    return;
  }
  if (value.per_row != 1) {
    append_integer(text, value.per_row);
  }
  text += 'r';
  if (value.fixed != 0) {
    text += value.fixed > 0 ? "+" : "";
    append_integer(text, value.fixed);
  }
}

void append_location(std::string& text, const Location& where) {
  if (where == Location{}) {
    return;
  }
  text += " at ";
  append_quoted(text, where.file);
  if (where.line != 0 || where.column != 0) {
    text += ':';
    append_integer(text, where.line);
  }
  if (where.column != 0) {
    text += ':';
    append_integer(text, where.column);
  }
}

std::optional<Diagnostic> first_difference(std::string_view text, std::string_view printed,
                                           const std::string& source, const std::string& code) {
  const auto [at, other] = std::mismatch(text.begin(), text.end(), printed.begin(), printed.end());
  if (at == text.end() && other == printed.end()) {
    return std::nullopt;
  }
  const auto position = static_cast<std::size_t>(at - text.begin());
  const std::string_view before = text.substr(0, position);
  const std::size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const auto line = static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n') + 1);
  const std::string_view rest = printed.substr(position);
  return error(code,
               "expected " + (rest.empty() ? "the end of the text" : excerpt(rest)) + ", got " +
                   (at == text.end() ? "the end of the text" : excerpt(text.substr(position))) +
                   ": only the printed form is read back",
               {source, line, code_points(before.substr(line_start)) + 1});
}

}  // namespace piper
