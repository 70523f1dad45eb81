// Every file of tests/cli/bad_input is a job with one mistake, and says in its header what the user
// is told. The README there has the form. A case must end with status 2, within two seconds, and
// with nothing on standard output: the program prints the run's headline before it hands the job to
// Runtime::train or Runtime::verify, which start threads and communicators, so an empty output
// shows that neither was called.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = PIPER_SOURCE_DIR "/tests/cli/bad_input";
constexpr double kMostSeconds = 2;

struct Case {
  std::string job;                    // {job}
  std::string run = "check {job}";    // the command line
  std::vector<std::string> expected;  // lines of standard error
  std::map<std::string, std::string> environment;
  bool needs_runtime = false;
  std::string unknown;  // a header line that is none
};

// The leading comments, `# word: text`.
Case read_case(const fs::path& file) {
  Case read;
  read.job = file.filename();
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line) && line.starts_with("# ");) {
    const std::size_t colon = line.find(": ");
    const std::string word = line.substr(2, colon - 2);
    const std::string text = colon == std::string::npos ? "" : line.substr(colon + 2);
    if (word == "run") {
      read.run = text;
    } else if (word == "job") {
      read.job = text;
    } else if (word == "expect") {
      read.expected.push_back(text);
    } else if (word == "env") {
      read.environment[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    } else if (word == "needs" && text == "runtime") {
      read.needs_runtime = true;
    } else {
      read.unknown = line;
    }
  }
  return read;
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> found(1);
  for (const char c : text) {
    if (c == ' ') {
      found.emplace_back();
    } else {
      found.back() += c;
    }
  }
  return found;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    const fs::path extension = entry.path().extension();
    if (extension == ".toml" || extension == ".case") {
      names.push_back(entry.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class BadInput : public ::testing::TestWithParam<std::string> {};

TEST_P(BadInput, IsRefusedInTheseWords) {
  const Case wanted = read_case(kFolder / GetParam());
  ASSERT_EQ(wanted.unknown, "");
  ASSERT_FALSE(wanted.expected.empty()) << "the case has no `# expect: ` line";
  const bool has_runtime = fs::exists(PIPER_BINARY_DIR "/lib/libpiper_runtime.so");
  if (wanted.needs_runtime && !has_runtime) {
    GTEST_SKIP() << "this build has no runtime";
  }
  auto environment = wanted.environment;
  environment["PIPER_CACHE"] = PIPER_BINARY_DIR "/tests/cache";
  std::vector<std::string> arguments = words(replace_all(wanted.run, "{job}", wanted.job));
  for (std::string& argument : arguments) {
    argument = replace_all(argument, "{plugins}", PIPER_PLUGIN_DIR);
  }

  Ended ended = run_program(PIPER_PROGRAM, arguments, kFolder, environment);
  if (ended.seconds.count() >= kMostSeconds) {  // a busy machine, or the first read of a library
    ended = run_program(PIPER_PROGRAM, arguments, kFolder, environment);
  }

  std::string expected;
  for (const std::string& line : wanted.expected) {
    expected += replace_all(line, "{job}", wanted.job) + '\n';
  }
  const std::string told = replace_all(ended.err, PIPER_PLUGIN_DIR, "{plugins}");
  EXPECT_EQ(replace_all(told, kFolder, "{folder}"), expected);
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_LT(ended.seconds.count(), kMostSeconds);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& parameter) {
  const std::string& file = parameter.param;
  return file.substr(0, file.find('.'));
}

INSTANTIATE_TEST_SUITE_P(Cli, BadInput, ::testing::ValuesIn(case_names()), test_name);

}  // namespace
}  // namespace piper::testing
