// The sample of a text form that stands in a comment of the file that prints it.
#pragma once

#include <fstream>
#include <string>

#include "core/base/diagnostic.h"

namespace piper::test {

// From the line `first` on, to the end of what is indented as it is; a line that is indented by
// four more continues the one before. `file` is a path in the repository.
inline std::string header_sample(const std::string& file, const std::string& first) {
  const std::string indent = "//     ", more = indent + "    ";
  std::ifstream in(std::string(PIPER_SOURCE_DIR) + "/" + file);
  std::string text;
  for (std::string line; std::getline(in, line);) {
    if (text.empty() ? line != indent + first : !line.starts_with(indent)) {
      if (!text.empty()) {
        break;
      }
      continue;
    }
    const bool goes_on = line.starts_with(more);
    text += (text.empty() ? ""
             : goes_on    ? " "
                          : "\n") +
            line.substr((goes_on ? more : indent).size());
  }
  PIPER_CHECK(!text.empty(), "no sample in " + file);
  return text + '\n';
}

}  // namespace piper::test
