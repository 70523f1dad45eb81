// Jobs that do not fit, what is said to help them, and the largest micro-batch that fits.
#include <gtest/gtest.h>

#include <chrono>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace piper::testing {
namespace {

Ended plan(std::vector<std::string> options, const std::string& job = "examples/pp2_dp2.toml") {
  options.insert(options.begin(), {"plan", job});
  options.push_back("--model.graph=tests/data/graphs/qwen3_debug.graph");
  return run_program(PIPER_PROGRAM, options, PIPER_SOURCE_DIR,
                     {{"PIPER_CACHE", PIPER_BINARY_DIR "/tests/cache"}});
}

// The number after `name` in a text.
long long number_after(const std::string& text, const std::string& name) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(name + "(\\d+)")) ? std::stoll(found[1]) : -1;
}

TEST(MaxBatch, FitsAndOneRowMoreDoesNot) {
  const std::string limit = "--memory.capacity=24MiB";
  const Ended ended = plan({"--max-batch", limit});

  ASSERT_EQ(ended.status, 0) << ended.err;
  const long long rows = number_after(ended.out, "^");
  const long long batch = number_after(ended.out, "training.global_batch_size = ");
  EXPECT_GT(rows, 1);
  EXPECT_EQ(batch, rows * 4 * 2);  // micro-batches, data-parallel ranks
  const auto with = [&](long long size) {
    return plan({limit, "--training.global_batch_size=" + std::to_string(size)}).status;
  };
  EXPECT_EQ(with(batch), 0);
  EXPECT_EQ(with(batch + 8), 2);
}

TEST(MaxBatch, WantsACapacity) {
  const Ended ended = plan({"--max-batch"});

  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find("[memory.no_capacity]"), std::string::npos) << ended.err;
}

TEST(MaxBatch, IsRefusedWhereOneRowIsTooMuch) {
  const Ended ended = plan({"--max-batch", "--memory.capacity=1MiB"});

  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find("for one row a micro-batch, got 1.0 MiB [plan.capacity]"),
            std::string::npos)
      << ended.err;
}

TEST(Capacity, IsRefusedWithWhatWouldNeedHowMuch) {
  const Ended ended = plan({"--memory.capacity=16MiB", "--training.global_batch_size=128"});

  EXPECT_EQ(ended.status, 2);
  EXPECT_LT(ended.seconds, std::chrono::seconds(2));
  for (const std::string what : {"note: training.microbatches = 8 would need ",
                                 "note: training.microbatches = 16 would need ",
                                 "note: activation_checkpoint.mode = \"full\" would need ",
                                 "note: stage = 1 of plugin zero would need ",
                                 "note: stage = 3 of plugin zero would need "}) {
    EXPECT_NE(ended.err.find(what), std::string::npos) << what << '\n' << ended.err;
  }
}

// What is said to fit does, what is not does not.
TEST(Capacity, IsSaidToSufficeWhereItDoes) {
  bool suffices = false, falls_short = false;
  for (const char* const limit : {"12MiB", "16MiB", "20MiB", "28MiB"}) {
    const std::string capacity = std::string("--memory.capacity=") + limit;
    const Ended ended = plan({capacity, "--training.global_batch_size=128"});
    for (const std::string count : {"8", "16"}) {
      const std::regex note("training.microbatches = " + count +
                            " would need [^\\n,]*(, which fits)?\n");
      std::smatch found;
      if (!std::regex_search(ended.err, found, note)) {
        continue;
      }
      const int status =
          plan({capacity, "--training.global_batch_size=128", "--training.microbatches=" + count})
              .status;
      EXPECT_EQ(status == 0, found[1].matched) << limit << '\n' << ended.err;
      (found[1].matched ? suffices : falls_short) = true;
    }
  }
  EXPECT_TRUE(suffices);
  EXPECT_TRUE(falls_short);
}

}  // namespace
}  // namespace piper::testing
