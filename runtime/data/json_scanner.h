// Reads one JSON text from left to right, without a tree.
//
// It accepts what RFC 8259 does, and one thing more: a string may hold an escaped half of a
// surrogate pair (`"\ud800"`), which other programs write. A failure is kept with its place and its
// reason; nothing is read after it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace piper {

// `text` for a message: control characters and bytes that are not UTF-8 as \x1b; at most `most`
// bytes of it, then `...`.
std::string printable(std::string_view text, std::size_t most = 40);

// The length of the UTF-8 sequence that `text` begins with; 0 = it begins with none.
std::size_t utf8_length(std::string_view text);

class JsonScanner {
 public:
  struct Number {
    std::string_view text;
    bool integer = false;  // neither point nor exponent
    bool fits = false;     // an integer whose magnitude is at most 2^53: `value`
    std::int64_t value = 0;
  };

  explicit JsonScanner(std::string_view text) : text_(text) {}

  // The next character that is not white space, which stays; '\0' at the end.
  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool at_end() { return peek() == '\0' && at_ == text_.size(); }

  // Takes the next character where it is `wanted`.
  bool accept(char wanted) {
    if (peek() != wanted || at_ == text_.size()) {
      return false;
    }
    ++at_;
    return true;
  }
  // The same, and else `expected WHAT, got ...` is the failure.
  bool expect(char wanted, const char* what) { return accept(wanted) || unexpected(what); }

  // An integer of up to 15 digits, plainly written, with what ends it; false, and nothing is taken,
  // where there is anything else. What most of a file is, in few instructions.
  bool plain_integer(std::int64_t& value) {
    peek();
    std::size_t at = at_;
    const bool negative = at < text_.size() && text_[at] == '-';
    const std::size_t digits = at += negative ? 1 : 0;
    std::int64_t magnitude = 0;
    for (; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at) {
      magnitude = magnitude * 10 + (text_[at] - '0');
      if (at - digits == 15) {
        return false;
      }
    }
    const bool leading_zero = at - digits > 1 && text_[digits] == '0';
    if (at == digits || leading_zero || at == text_.size() ||
        (text_[at] != ',' && text_[at] != ']')) {
      return false;
    }
    value = negative ? -magnitude : magnitude;
    at_ = at;
    return true;
  }

  // What stands between the quotes; escapes are checked and kept.
  bool string(std::string_view& inside);
  bool number(Number& number);
  bool literal(std::string_view word);  // true, false, null
  // Any value, with all that is in it.
  bool skip();

  // The kind of the value that begins here: object, array, string, number, boolean or null; "" =
  // none.
  std::string_view kind();

  // `expected WHAT, got CHARACTER`. False.
  bool unexpected(const std::string& what);
  // Another reason. False.
  bool fail_at(std::size_t offset, std::string reason);

  std::size_t offset() const { return at_; }
  const std::string& reason() const { return reason_; }
  std::size_t failed_at() const { return failed_at_; }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  bool escape();
  bool multibyte();
  bool scalar();

  std::string_view text_;
  std::size_t at_ = 0;
  std::string reason_;
  std::size_t failed_at_ = 0;
};

}  // namespace piper
