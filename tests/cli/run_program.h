// Runs the piper program as a user would, for tests.
#pragma once

#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <vector>

namespace piper::testing {

struct Ended {
  int status = -1;  // exit status; 128 + n after signal n
  std::string out, err;
  std::chrono::duration<double> seconds{};
};

// Runs `program` in `folder` and waits; in place of this build's program, that of the environment
// variable PIPER_TEST_PROGRAM. `environment` is added to the test's own. With `interrupt_at`,
// Ctrl-C (SIGINT), or another `signal`, follows once standard output has that text.
Ended run_program(const std::string& program, const std::vector<std::string>& arguments,
                  const std::string& folder,
                  const std::map<std::string, std::string>& environment = {},
                  const std::string& interrupt_at = "", int signal = SIGINT);

// Replaces every `from` in `text`.
std::string replace_all(std::string text, const std::string& from, const std::string& to);

}  // namespace piper::testing
