#include "tests/support/text_mutation.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace piper::test {
namespace {

std::pair<std::size_t, std::size_t> line_at(const std::string& text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::size_t end = text.find('\n', begin);
  return {begin, end == std::string::npos ? text.size() : end + 1};
}

}  // namespace

std::uint32_t TextMutation::random(std::size_t bound) {
  state_ = state_ * 1664525u + 1013904223u;
  return static_cast<std::uint32_t>((std::uint64_t{state_ >> 4} * bound) >> 28);
}

void TextMutation::change(std::string& text) {
  constexpr std::string_view kBytes = "0123456789rmcbs%^*+-()[]{}\"\\,:= \n\0\xff\xc3";
  if (text.empty()) {
    return;
  }
  const std::size_t at = random(text.size());
  const auto [begin, end] = line_at(text, at);
  const std::string line = text.substr(begin, end - begin);
  switch (random(8)) {
    case 0:
      text.erase(at, 1 + random(4));
      break;
    case 1:
      text.insert(at, 1, kBytes[random(kBytes.size())]);
      break;
    case 2:
      text[at] = kBytes[random(kBytes.size())];
      break;
    case 3:
      text.insert(end, line);
      break;
    case 4:
      text.erase(begin, end - begin);
      break;
    case 5: {
      const auto [other, other_end] = line_at(text, random(text.size()));
      text.insert(other, line);
      break;
    }
    case 6: {
      const std::size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) {
        text.insert(digit, random(2) == 0 ? "4294967295" : "9223372036854775807");
      }
      break;
    }
    default: {
      const std::size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) {
        text[digit] = static_cast<char>('0' + random(10));
      }
      break;
    }
  }
}

std::string TextMutation::operator()(std::string text) {
  for (std::uint32_t left = 1 + random(4); left > 0; --left) {
    change(text);
  }
  return text;
}

}  // namespace piper::test
