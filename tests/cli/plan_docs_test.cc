// docs/plan.md shows what the commands in it print; it and docs/simulate.md have pictures. Hashes
// of plans are among what is compared: PIPER_UPDATE_GOLDEN=1 writes pictures, texts are pasted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace piper::testing {
namespace {

std::string read(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    parts.push_back(part);
  }
  return parts;
}

bool has_runtime() {
  return std::filesystem::exists(PIPER_BINARY_DIR "/lib/libpiper_runtime.so");
}

// In the folder of the sources; where nothing can be captured, from a graph that was.
Ended run(std::vector<std::string> arguments) {
  if (!has_runtime()) {
    arguments.push_back("--model.graph=tests/data/graphs/qwen3_debug.graph");
  }
  return run_program(PIPER_PROGRAM, arguments, PIPER_SOURCE_DIR,
                     {{"PIPER_CACHE", PIPER_BINARY_DIR "/tests/cache"}});
}

struct Example {
  std::string command, output;
};

// Commands that are followed by what they print.
std::vector<Example> examples() {
  const std::regex block(
      "```console\n\\$ build/release/bin/piper ([^\n]*)\n```\n\n```text\n([^`]*)```");
  const std::string page = read(PIPER_SOURCE_DIR "/docs/plan.md");
  std::vector<Example> found;
  for (std::sregex_iterator it(page.begin(), page.end(), block), end; it != end; ++it) {
    found.push_back({(*it)[1], (*it)[2]});
  }
  return found;
}

TEST(PlanDocs, ShowWhatTheCommandsPrint) {
  ASSERT_EQ(examples().size(), 7U);
  for (const Example& example : examples()) {
    if (!has_runtime() && example.command.find("--diff") != std::string::npos) {
      continue;  // the second job would have to be captured
    }
    const Ended ended = run(split(example.command, ' '));
    const std::vector<std::string> printed = split(ended.out, '\n');

    ASSERT_EQ(ended.err, "") << example.command;
    auto at = printed.begin();
    bool skips = true;  // up to the next line that is shown
    for (const std::string& line : split(example.output, '\n')) {
      if (line == "...") {
        skips = true;
        continue;
      }
      const auto found = skips ? std::find(at, printed.end(), line) : at;
      ASSERT_TRUE(found != printed.end() && *found == line)
          << example.command << "\ndoes not print, or not here:\n"
          << line;
      at = found + 1;
      skips = false;
    }
  }
}

// PIPER_UPDATE_GOLDEN=1 writes the picture.
void expect_picture(const std::string& file, const std::string& drawn) {
  const char* const update = std::getenv("PIPER_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::ofstream(file, std::ios::binary) << drawn;
    return;
  }
  EXPECT_EQ(read(file), drawn) << file
                               << " is not what the command draws; PIPER_UPDATE_GOLDEN=1 writes it";
}

TEST(PlanDocs, HaveThePictureThatTheCommandDraws) {
  const Ended drawn = run({"plan", "examples/pp2_dp2.toml", "--mesh.pp=4", "--mesh.dp=1",
                           "--training.microbatches=8", "--format", "svg"});
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  expect_picture(PIPER_SOURCE_DIR "/docs/plan.svg", drawn.out);
}

// How the example of the quick start is planned.
TEST(ReadmeDocs, ShowThePlanOfTheQuickStart) {
  if (!has_runtime()) {
    GTEST_SKIP() << "its model has to be captured";
  }
  const Ended ended = run({"simulate", "examples/quickstart.toml"});
  ASSERT_EQ(ended.status, 0) << ended.err;

  const std::string headline = ended.out.substr(0, ended.out.find(": verified\n"));
  EXPECT_NE(read(PIPER_SOURCE_DIR "/README.md").find("```text\n" + headline), std::string::npos)
      << "README.md does not show this:\n"
      << headline;
}

// From a graph that was captured, whether or not there is a runtime.
TEST(SimulateDocs, ShowWhatTheCommandPrintsAndDraws) {
  const std::string picture = ::testing::TempDir() + "simulated.svg";
  const Ended ended =
      run_program(PIPER_PROGRAM,
                  {"simulate", "examples/zbv.toml", "--mesh.pp=4", "--training.microbatches=8",
                   "--model.graph=tests/data/graphs/qwen3_debug_8_layers.graph", "--costs", "unit",
                   "--svg", picture},
                  PIPER_SOURCE_DIR, {});
  ASSERT_EQ(ended.status, 0) << ended.err;

  expect_picture(PIPER_SOURCE_DIR "/docs/simulate.svg", read(picture));
  const std::string page = read(PIPER_SOURCE_DIR "/docs/simulate.md");
  EXPECT_NE(page.find("```text\n" + ended.out + "```"), std::string::npos)
      << "docs/simulate.md does not show this:\n"
      << ended.out;
}

}  // namespace
}  // namespace piper::testing
