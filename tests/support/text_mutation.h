// Texts that are wrong in some small way, the same ones in each run.
#pragma once

#include <cstdint>
#include <string>

namespace piper::test {

class TextMutation {
 public:
  explicit TextMutation(std::uint32_t seed) : state_(seed * 2654435761u + 1) {}

  // One to four changes: bytes removed, inserted, replaced; lines doubled, removed, exchanged;
  // numbers made huge.
  std::string operator()(std::string text);

 private:
  std::uint32_t random(std::size_t bound);
  void change(std::string& text);

  std::uint32_t state_;
};

}  // namespace piper::test
