#include "core/config/spelling.h"

#include <algorithm>
#include <cctype>

namespace piper {
namespace {

std::string bare(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (c != '_' && c != '-') {
      kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return kept;
}

}  // namespace

std::string known_spelling(std::string_view text, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), text) != known.end()) {
    return std::string(text);
  }
  const auto same = std::find_if(known.begin(), known.end(),
                                 [&](const std::string& name) { return bare(name) == bare(text); });
  return same == known.end() ? "" : *same;
}

}  // namespace piper
