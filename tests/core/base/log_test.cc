// What a run says, and what a level leaves out.
#include "core/base/log.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace piper {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_log_level(LogLevel::info);
    std::fclose(file_);
  }

  std::string text() {
    std::rewind(file_);
    std::array<char, 256> bytes{};
    return {bytes.data(), std::fread(bytes.data(), 1, bytes.size(), file_)};
  }

  std::FILE* file_ = std::tmpfile();
};

TEST_F(Log, WritesLinesAsTheyAreAndAtOnce) {
  LineLog log(file_);

  log.say(LogLevel::info, "step 1  {} %v");
  log.say(LogLevel::error, "two\nlines");

  EXPECT_EQ(text(), "step 1  {} %v\ntwo\nlines\n");
}

TEST_F(Log, LeavesOutWhatIsBelowTheLevel) {
  set_log_level(LogLevel::warning);
  LineLog log(file_);

  log.say(LogLevel::info, "a step");
  log.say(LogLevel::warning, "a remark");
  log.say(LogLevel::error, "a mistake");

  EXPECT_EQ(text(), "a remark\na mistake\n");
}

}  // namespace
}  // namespace piper
