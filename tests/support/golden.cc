#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace piper::test {

void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(PIPER_SOURCE_DIR) / "tests" / "golden" / (name + ".txt");
  const char* const update = std::getenv("PIPER_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream expected;
  expected << file.rdbuf();
  ASSERT_TRUE(file.is_open()) << path << " is missing; PIPER_UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(expected.str(), text) << "differs from " << path;
}

}  // namespace piper::test
