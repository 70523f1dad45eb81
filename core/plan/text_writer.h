// Writes text in one pass through a small buffer that is emptied into a string, or into a running
// hash: a million lines never have to be in memory for their hash.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/ir/model_graph.h"

namespace piper {

// `Sink` is called with each full buffer. flush() before the sink is used.
template <typename Sink>
class TextWriter {
 public:
  explicit TextWriter(Sink& sink) : sink_(sink) {}
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  void flush() {
    sink_(std::string_view(buffer_.data(), used_));
    line_start_ -= static_cast<std::ptrdiff_t>(used_);
    used_ = 0;
  }

  TextWriter& operator<<(std::string_view text) {
    if (text.size() > kSpare) {
      flush();
      sink_(text);
      line_start_ -= static_cast<std::ptrdiff_t>(text.size());
      return *this;
    }
    make_room();
    text.copy(buffer_.data() + used_, text.size());
    used_ += text.size();
    return *this;
  }
  TextWriter& operator<<(char c) {
    make_room();
    buffer_[used_++] = c;
    return *this;
  }
  TextWriter& operator<<(std::int64_t value) {
    make_room();
    char* const begin = buffer_.data() + used_;
    used_ += static_cast<std::size_t>(std::to_chars(begin, begin + kSpare, value).ptr - begin);
    return *this;
  }
  TextWriter& operator<<(std::uint32_t value) { return *this << static_cast<std::int64_t>(value); }
  TextWriter& operator<<(Affine value) {
    if (value.per_row == 0) {
      return *this << value.fixed;
    }
    if (value.per_row != 1) {
      *this << value.per_row;
    }
    *this << 'r';
    if (value.fixed != 0) {
      *this << (value.fixed > 0 ? "+" : "") << value.fixed;
    }
    return *this;
  }

  void start_line() { line_start_ = static_cast<std::ptrdiff_t>(used_); }
  // One space, or as many as it takes to reach `column` of the line.
  void pad(std::ptrdiff_t column) {
    const std::ptrdiff_t missing = column - (static_cast<std::ptrdiff_t>(used_) - line_start_);
    make_room();
    const std::size_t count = missing < 1 ? 1 : static_cast<std::size_t>(missing);
    std::memset(buffer_.data() + used_, ' ', count);
    used_ += count;
  }

 private:
  static constexpr std::size_t kSpare = 128;  // more than one piece or padding needs

  void make_room() {
    if (used_ + kSpare > buffer_.size()) [[unlikely]] {
      flush();
    }
  }

  Sink& sink_;
  std::array<char, 32768> buffer_;
  std::size_t used_ = 0;
  std::ptrdiff_t line_start_ = 0;
};

}  // namespace piper
