// Tables for people.
#pragma once

#include <string>
#include <vector>

namespace piper {

// A line a row, each beginning with `margin`; columns are as wide as their widest cell, two spaces
// apart. All rows have as many cells.
std::string table(const std::vector<std::vector<std::string>>& rows,
                  const std::string& margin = "");

}  // namespace piper
