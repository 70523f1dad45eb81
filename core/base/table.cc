#include "core/base/table.h"

#include <algorithm>

namespace piper {

std::string table(const std::vector<std::vector<std::string>>& rows, const std::string& margin) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    text += margin;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_last = i + 1 == row.size();
      text += row[i] + (is_last ? "\n" : std::string(widths[i] - row[i].size() + 2, ' '));
    }
  }
  return text;
}

}  // namespace piper
