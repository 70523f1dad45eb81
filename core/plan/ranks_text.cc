#include "core/plan/ranks_text.h"

namespace piper {

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t kMostShown = 8;
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size() && i < kMostShown; ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kMostShown) {
    text += " and " + std::to_string(ranks.size() - kMostShown) + " more";
  }
  return text;
}

}  // namespace piper
