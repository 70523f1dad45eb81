// JSON as it is written, never a tree in memory: objects, arrays, commas and escapes.
#pragma once

#include <concepts>
#include <cstdint>
#include <ostream>
#include <string_view>

#include "core/plan/text_writer.h"

namespace piper {

class JsonWriter {
 public:
  explicit JsonWriter(std::ostream& stream) : sink_{stream}, out_(sink_) {}

  // Of the top, of an array's next item, or of the key that was written last.
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name) {
    separate();
    quoted(name);
    out_ << ':';
    has_item_ = false;
    return *this;
  }

  JsonWriter& value(std::string_view text) {
    separate();
    quoted(text);
    return *this;
  }
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) JsonWriter& value(Number number) {
    separate();
    out_ << static_cast<std::int64_t>(number);
    return *this;
  }
  template <std::same_as<bool> Bool>
  JsonWriter& value(Bool truth) {
    separate();
    out_ << (truth ? "true" : "false");
    return *this;
  }
  // A number that is written already.
  JsonWriter& raw(std::string_view number) {
    separate();
    out_ << number;
    return *this;
  }
  template <typename T>
  JsonWriter& field(std::string_view name, const T& what) {
    return key(name).value(what);
  }

  // The next item starts on a line of its own.
  JsonWriter& new_line() {
    out_ << (has_item_ ? ",\n" : "\n");
    has_item_ = false;
    return *this;
  }
  void finish() {
    out_ << '\n';
    out_.flush();
  }

 private:
  struct Sink {
    std::ostream& stream;
    void operator()(std::string_view piece) const {
      stream.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    }
  };

  JsonWriter& open(char bracket) {
    separate();
    out_ << bracket;
    has_item_ = false;
    return *this;
  }
  JsonWriter& close(char bracket) {
    out_ << bracket;
    has_item_ = true;
    return *this;
  }
  void separate() {
    out_ << (has_item_ ? "," : "");
    has_item_ = true;
  }
  void quoted(std::string_view text);

  Sink sink_;
  TextWriter<Sink> out_;
  bool has_item_ = false;  // the next one needs a comma
};

inline void JsonWriter::quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out_ << '"';
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') {
      continue;
    }
    out_ << text.substr(plain, i - plain);
    plain = i + 1;
    if (byte < 0x20) {
      out_ << "\\u00" << kDigits[byte >> 4U] << kDigits[byte & 15U];
    } else {
      out_ << '\\' << text[i];
    }
  }
  out_ << text.substr(plain) << '"';
}

}  // namespace piper
