// examples/: the pipelines compute what one device computes, and train.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/run_program.h"

namespace piper {
namespace {

testing::Ended run(const std::string& command, const std::string& name,
                   const std::string& further = "--training.seed=1") {
  return testing::run_program(PIPER_PROGRAM, {command, "examples/" + name + ".toml", further},
                              PIPER_SOURCE_DIR, {{"PIPER_CACHE", PIPER_BINARY_DIR "/tests/cache"}});
}

class PipelineJob : public ::testing::TestWithParam<std::string> {};

TEST_P(PipelineJob, ComputesWhatOneDeviceComputes) {
  const testing::Ended verified = run("verify", GetParam());

  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
  EXPECT_NE(verified.out.find("parity with one device: ok"), std::string::npos) << verified.out;
}

TEST_P(PipelineJob, Trains) {
  const testing::Ended trained = run("train", GetParam(), "--training.steps=2");

  EXPECT_EQ(trained.status, 0) << trained.out << trained.err;
  EXPECT_NE(trained.out.find("done steps=2 "), std::string::npos) << trained.out;
}

INSTANTIATE_TEST_SUITE_P(Examples, PipelineJob,
                         ::testing::Values("pp2_dp2", "interleaved", "zbv", "dualpipev"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace piper
