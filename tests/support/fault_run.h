// Runs programs under the library of tests/support/faulty_files.h.
//
//   WritingRun run{program, arguments, folder};
//   const Recorded recorded = record(run);
//   EXPECT_EQ(power_loss_fault(recorded, allowed), "");
//   for (long at = 1; at <= count(recorded.calls); ++at) {
//     run_with_fault(run, "kill", at);
//     EXPECT_TRUE(allowed(without_staging(look(folder)), false));
//   }
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/support/power_loss.h"

namespace piper::testing {

// A program that writes below a folder.
struct WritingRun {
  std::string program;
  std::vector<std::string> arguments;
  std::string folder;  // that it runs in; its calls below count
  std::map<std::string, std::string> environment;
  std::function<void()> prepare = [] {};  // puts into the empty folder what is there before
};

// Whether files are as they may be; `complete`: the program said that it is done.
using Allowed = std::function<bool(const Files& files, bool complete)>;

// Empties the folder, prepares it, and runs the program with something at the `at`th call: "fail",
// "fail-on", "short" or "kill".
Ended run_with_fault(const WritingRun& run, const std::string& what, long at, int error = 0);

// The same without a fault; gives the files before it and the calls.
struct Recorded {
  Ended ended;
  Files before;
  std::vector<FileCall> calls;
};
Recorded record(const WritingRun& run);

// The calls that count.
long count(const std::vector<FileCall>& calls);

// For a power failure after each of the calls: text about the first state that is not allowed, or
// "".
std::string power_loss_fault(const Recorded& recorded, const Allowed& allowed,
                             std::size_t left_out = kNoSync);

// A line a file, for messages of tests.
std::string describe(const Files& files);

// Removes names of staging files.
Files without_staging(Files files);

}  // namespace piper::testing
