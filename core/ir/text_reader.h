// Reads the line-based texts of core (model graphs, plans): words, numbers, quoted text, lists.
//
// The first thing that is wrong is kept as an error with its line and column, and every later call
// returns a default and changes nothing, so a parser reads straight on and asks ok() once a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"

namespace piper {

class TextReader {
 public:
  // Errors get `code`; their place is `source`:line:column.
  TextReader(std::string_view text, std::string source, std::string code)
      : text_(text), source_(std::move(source)), code_(std::move(code)) {}

  bool ok() const { return !error_.has_value(); }
  Diagnostic take_error() { return std::move(*error_); }
  // Keeps the error "expected `what`, got ..." at the next token, unless there already is one.
  void expected(std::string_view what);
  // Keeps an error with a text of its own, at the token that was read last.
  void refuse(std::string message, std::string code = "");

  bool at_end() const { return !ok() || position_ == text_.size(); }
  std::uint32_t line() const { return line_; }
  std::size_t size() const { return text_.size(); }  // of the whole text, in bytes
  Location here() const;                             // of the token that was read last

  // Skips spaces; true, and read, if the line goes on with exactly this text (a word ends at a
  // word's end).
  bool accept(std::string_view token);
  void expect(std::string_view token);
  bool peek(std::string_view token);
  bool accept_sigil(char sigil);  // a character right before a number, as in `m3`
  bool at_number();
  void skip_past(std::string_view token);  // of this line; what lies before it is not looked at
  void end_of_line();
  bool at_end_of_line();

  std::string_view word();  // letters, digits, _ . -
  std::string quoted();     // "..." with \" \\ \n \t \xHH
  std::int64_t integer();
  std::uint32_t number();  // 0 .. 4294967294
  // The number of an item, which must be the next one.
  void item(std::string_view what, std::size_t next);
  Affine affine();      // 12, 3r, r, 3r+12
  Location location();  // [at "file":line:column], or nothing

  // `open item, item close`; `item` is called once for each.
  template <typename Item>
  void list(std::string_view open, std::string_view close, Item item) {
    expect(open);
    if (accept(close)) {
      return;
    }
    do {
      item();
    } while (ok() && accept(","));
    expect(close);
  }

 private:
  void spaces();
  bool starts_with(std::string_view token) const;
  std::uint32_t column_of(std::size_t position) const;

  std::string_view text_;
  std::string source_, code_;
  std::size_t position_ = 0, token_ = 0, line_start_ = 0;
  std::uint32_t line_ = 1;
  std::optional<Diagnostic> error_;
};

// What TextReader reads back.
void append_quoted(std::string& text, std::string_view value);
void append_integer(std::string& text, std::int64_t value);
void append_affine(std::string& text, Affine value);
void append_location(std::string& text,
                     const Location& where);  // ` at "file":line:column`, or nothing

// The first difference between a text and what its value prints as, as an error: only the printed
// form is accepted.
std::optional<Diagnostic> first_difference(std::string_view text, std::string_view printed,
                                           const std::string& source, const std::string& code);

}  // namespace piper
