// A plugin that crashes, ends the process, hangs or prints, in the program as a user runs it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_program.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PIPER_SANITIZED 1
#else
#define PIPER_SANITIZED 0
#endif

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

class ForeignCode : public ::testing::Test {
 protected:
  ForeignCode()
      : folder_(fs::temp_directory_path() / ("piper_foreign_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "job.toml")
        << "[model]\ngraph = \"" << PIPER_SOURCE_DIR
        << "/tests/cli/bad_input/data/two_layers.graph\"\n[[strategy]]\nplugin = \"crashes\"\n";
  }
  ~ForeignCode() override { fs::remove_all(folder_); }

  Ended plan_with(const std::string& what, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"plan", "job.toml", "--plugin-dir", HOSTILE_DIR "/crashes"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(PIPER_PROGRAM, arguments, folder_, {{"HOSTILE_DOES", what}});
  }
  // The first line on standard error, and the exit status; a sanitizer has its own.
  void expect_end(const std::string& what, const std::string& line, int status) const {
    const Ended ended = plan_with(what);
    EXPECT_EQ(ended.err.substr(0, ended.err.find('\n')), line) << what;
    EXPECT_EQ(ended.out, "") << what;
    if (PIPER_SANITIZED) {
      EXPECT_NE(ended.status, 0) << what;
    } else {
      EXPECT_EQ(ended.status, status) << what << '\n' << ended.err;
    }
  }

  fs::path folder_;
};

TEST_F(ForeignCode, ThatCrashesIsNamedAndTheProcessEndsByTheSignal) {
  const std::string crashed = "error: plugin 'crashes' crashed in plan (signal ";
  expect_end("writes to NULL", crashed + "11, SIGSEGV) [plugin.crashed]", 128 + 11);
  expect_end("divides by zero", crashed + "8, SIGFPE) [plugin.crashed]", 128 + 8);
  expect_end("aborts", crashed + "6, SIGABRT) [plugin.crashed]", 128 + 6);
  expect_end("sends itself a signal", crashed + "7, SIGBUS) [plugin.crashed]", 128 + 7);
  expect_end("recurses", crashed + "11, SIGSEGV) [plugin.crashed]", 128 + 11);
  expect_end("crashes while it is loaded",
             "error: plugin 'crashes' crashed in static constructors (signal 6, SIGABRT) "
             "[plugin.crashed]",
             128 + 6);
}

TEST_F(ForeignCode, ThatEndsTheProcessIsNamedAndDoesNotSayThatAllIsWell) {
  const Ended ended = plan_with("exits");
  EXPECT_EQ(ended.err,
            "printed before the exit\n"
            "error: plugin 'crashes' called exit(3) in plan [plugin.exited]\n");
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.status, 2);

  expect_end("exits quickly", "error: plugin 'crashes' called quick_exit in plan [plugin.exited]",
             2);
}

TEST_F(ForeignCode, ThatTakesLongIsNamedAndMayComeBack) {
  const Ended ended = plan_with("sleeps", {"--format", "json"});

  EXPECT_EQ(ended.err, "still in plan of plugin 'crashes' after 5 s\n");
  EXPECT_EQ(ended.status, 0);
}

TEST_F(ForeignCode, PrintsOnStandardErrorSoThatOutputStaysWhole) {
  const Ended ended = plan_with("prints", {"--format", "json"});

  EXPECT_EQ(ended.err, "printed by a plugin\n");
  EXPECT_TRUE(nlohmann::json::accept(ended.out)) << ended.out;
}

TEST_F(ForeignCode, IsNotBlamedForWhatComesAfterIt) {
  const Ended ended = plan_with("", {"--rank", "99"});

  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.err.find("plugin"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace piper::testing
