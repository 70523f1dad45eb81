#include "runtime/data/json_scanner.h"

#include <algorithm>
#include <cstdio>

namespace piper {
namespace {

constexpr std::uint64_t kExact = std::uint64_t{1} << 53;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hexadecimal(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xc2 && first <= 0xdf ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  // Neither longer than needed, nor a surrogate, nor beyond U+10FFFF.
  const bool wrong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                     (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return wrong ? 0 : length;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  std::size_t at = 0;
  while (at < text.size() && at < most) {
    const std::size_t length = utf8_length(text.substr(at));
    const auto c = static_cast<unsigned char>(text[at]);
    // C1 controls (U+0080 to U+009F) move cursors too.
    const bool control =
        c < 0x20 || c == 0x7f ||
        (length == 2 && c == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0);
    if (length == 0 || control) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", c);
      shown += escaped;
      ++at;
    } else {
      shown += text.substr(at, length);
      at += length;
    }
  }
  return at < text.size() ? shown + "..." : shown;
}

bool JsonScanner::fail_at(std::size_t offset, std::string reason) {
  failed_at_ = offset;
  reason_ = std::move(reason);
  return false;
}

bool JsonScanner::unexpected(const std::string& what) {
  peek();
  const std::string_view rest = text_.substr(at_);
  const std::size_t length = std::max<std::size_t>(utf8_length(rest), 1);
  return fail_at(at_, "expected " + what + ", got " +
                          (rest.empty() ? "the end of the line"
                                        : "'" + printable(rest.substr(0, length)) + "'"));
}

std::string_view JsonScanner::kind() {
  const char c = peek();
  switch (c) {
    case '{':
      return "object";
    case '[':
      return "array";
    case '"':
      return "string";
    case 't':
    case 'f':
      return "boolean";
    case 'n':
      return "null";
    default:
      return c == '-' || is_digit(c) ? "number" : "";
  }
}

// After a backslash.
bool JsonScanner::escape() {
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos && c != '\0') {
    ++at_;
    return true;
  }
  if (c != 'u') {
    return fail_at(at_ - 1, at_ == text_.size()
                                ? "expected the end of a string, got the end of the line"
                                : "expected an escape such as \\n or \\u0041, got '\\" +
                                      printable(text_.substr(at_, 1)) + "'");
  }
  for (std::size_t i = 1; i <= 4; ++i) {
    if (at_ + i >= text_.size() || !is_hexadecimal(text_[at_ + i])) {
      return fail_at(at_ - 1, "expected four hexadecimal digits after \\u, got '" +
                                  printable(text_.substr(at_ + 1, 4)) + "'");
    }
  }
  at_ += 5;
  return true;
}

// A byte above 0x7f in a string.
bool JsonScanner::multibyte() {
  const std::size_t length = utf8_length(text_.substr(at_));
  if (length == 0) {
    return fail_at(
        at_, "expected UTF-8 in a string, got the byte '" + printable(text_.substr(at_, 1)) + "'");
  }
  at_ += length;
  return true;
}

bool JsonScanner::string(std::string_view& inside) {
  if (!expect('"', "a string")) {
    return false;
  }
  const std::size_t begin = at_;
  while (at_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') {
      inside = text_.substr(begin, at_ - begin);
      ++at_;
      return true;
    }
    if (c == '\\') {
      ++at_;
      if (!escape()) {
        return false;
      }
    } else if (c >= 0x80) {
      if (!multibyte()) {
        return false;
      }
    } else if (c < 0x20) {
      return fail_at(at_, "expected control characters in a string to be escaped, got '" +
                              printable(text_.substr(at_, 1)) + "'");
    } else {
      ++at_;
    }
  }
  return fail_at(begin - 1, "expected the end of a string, got the end of the line");
}

bool JsonScanner::number(Number& number) {
  peek();
  const std::size_t begin = at_;
  const bool negative = at_ < text_.size() && text_[at_] == '-';
  at_ += negative ? 1 : 0;
  const std::size_t digits = at_;
  std::uint64_t magnitude = 0;
  bool large = false;
  for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
    magnitude = magnitude * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
    large = large || magnitude > kExact;
  }
  if (at_ == digits) {
    return unexpected(negative ? "a digit after '-'" : "a number");
  }
  if (at_ - digits > 1 && text_[digits] == '0') {
    return fail_at(digits, "expected a number without leading zeros, got '" +
                               printable(text_.substr(begin, at_ - begin)) + "'");
  }
  number.integer = true;
  const auto more = [&] {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      ++at_;
    }
    return at_ > first;
  };
  if (at_ < text_.size() && text_[at_] == '.') {
    number.integer = false;
    ++at_;
    if (!more()) {
      return unexpected("a digit after '.'");
    }
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    number.integer = false;
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
      ++at_;
    }
    if (!more()) {
      return unexpected("a digit of an exponent");
    }
  }
  number.text = text_.substr(begin, at_ - begin);
  number.fits = number.integer && !large;
  number.value =
      negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
  return true;
}

bool JsonScanner::literal(std::string_view word) {
  peek();
  if (!text_.substr(at_).starts_with(word)) {
    return unexpected("a value");
  }
  at_ += word.size();
  return true;
}

// A value without others in it.
bool JsonScanner::scalar() {
  std::string_view text;
  Number number_;
  switch (peek()) {
    case '"':
      return string(text);
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    default:
      return kind() == "number" ? number(number_) : unexpected("a value");
  }
}

bool JsonScanner::skip() {
  std::string open;  // the brackets that wait for their other half: no recursion, however deep
  while (true) {
    bool ended = true;
    if (accept('[')) {
      if (!accept(']')) {
        open += ']';
        ended = false;
      }
    } else if (accept('{')) {
      if (!accept('}')) {
        open += '}';
        ended = false;
      }
    } else if (!scalar()) {
      return false;
    }
    while (ended && !open.empty()) {
      if (accept(',')) {
        ended = false;
      } else if (accept(open.back())) {
        open.pop_back();
      } else {
        return unexpected(open.back() == ']' ? "',' or ']'" : "',' or '}'");
      }
    }
    if (open.empty()) {
      return true;
    }
    std::string_view key;
    if (open.back() == '}' && (!string(key) || !expect(':', "':' after the name of a field"))) {
      return false;
    }
  }
}

}  // namespace piper
