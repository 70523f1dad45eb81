// Texts that a test expects, kept as files under tests/golden: `suite/name.txt`.
// PIPER_UPDATE_GOLDEN=1 writes them; the difference is then reviewed as text. A file that is
// missing fails.
#pragma once

#include <string>

namespace piper::test {

// Adds a failure with the first lines that differ.
void expect_golden(const std::string& name, const std::string& text);

}  // namespace piper::test
