// `piper train`, stopped at each of its calls that write.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/fault_run.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOld = "what was there\n";
constexpr const char* kWeights = "out/model.safetensors";
constexpr const char* kConfig = "out/config.json";
constexpr const char* kOutputs[] = {kWeights, kConfig, "gradients", "trace.json", "costs.toml"};

// A job of one rank with every output that there is, each of them there before.
class RunCrash : public ::testing::Test {
 protected:
  RunCrash()
      : folder_(fs::canonical(fs::temp_directory_path()) /
                ("piper_run_crash_" + std::to_string(::getpid()))),
        work_(folder_ / "work") {
    fs::create_directories(folder_ / "text");
    for (int document = 0; document < 10; ++document) {
      std::ofstream(folder_ / "text" / std::to_string(document))
          << std::string(60, static_cast<char>('a' + document));
    }
    std::ofstream(folder_ / "job.toml") << R"([model]
layers = 1
dim = 4
heads = 1
ffn = 8
vocab = 257
[training]
seq_len = 8
global_batch_size = 2
microbatches = 1
steps = 2
)";
    run_.program = PIPER_PROGRAM;
    run_.arguments = {"train",
                      folder_ / "job.toml",
                      "--no-progress",
                      "--training.dataset_path=" + (folder_ / "text/*").string(),
                      "--checkpoint.last_save_path=out",
                      "--metrics.file=metrics",
                      "--profiling.trace=trace.json",
                      "--costs=costs.toml",
                      "--save-gradients=gradients"};
    run_.folder = work_;
    run_.environment = {{"PIPER_CACHE", PIPER_BINARY_DIR "/tests/cache"}, {"OMP_NUM_THREADS", "1"}};
    run_.prepare = [this] {
      fs::create_directories(work_ / "out");
      for (const char* const name : kOutputs) {
        std::ofstream(work_ / name) << kOld;
      }
      std::ofstream(work_ / "out" / "notes") << kOld;
      std::ofstream(work_ / "metrics") << kOld;
    };
  }
  ~RunCrash() override { fs::remove_all(folder_); }

  std::string at(const Files& files, const std::string& name) const {
    const auto found = files.find(work_ / name);
    return found == files.end() ? "nothing" : found->second;
  }

  // The old model, the new one, or none: weights and a config.json of two models are never there.
  bool may_be_model(const Files& files, const Files& whole) const {
    const std::string weights = at(files, kWeights), config = at(files, kConfig);
    return config == "nothing" ? weights == kOld || weights == at(whole, kWeights)
           : config == kOld    ? weights == kOld
                               : config == at(whole, kConfig) && weights == at(whole, kWeights);
  }

  // What a run leaves at any time: times differ from run to run, so that its trace, costs and
  // metrics are looked at for what they are.
  std::string fault(const Files& files, const Files& whole) const {
    if (!may_be_model(files, whole)) {
      return "out";
    }
    if (at(files, "gradients") != kOld && at(files, "gradients") != at(whole, "gradients")) {
      return "gradients";
    }
    if (at(files, "trace.json") != kOld && !nlohmann::json::accept(at(files, "trace.json"))) {
      return "trace.json";
    }
    const std::string costs = at(files, "costs.toml");
    if (costs != kOld &&
        (!costs.starts_with(at(whole, "costs.toml").substr(0, 8)) || !costs.ends_with('\n'))) {
      return "costs.toml";
    }
    if (at(files, "out/notes") != kOld) {
      return "out/notes";
    }
    return at(files, "metrics") == kOld || at(files, "metrics.1") == kOld ? "" : "metrics";
  }

  // What the process wrote of its metrics: whole lines, and half of the one that it was killed in.
  bool has_whole_lines(const Files& files) const {
    std::istringstream metrics(at(files, "metrics"));
    for (std::string line; std::getline(metrics, line);) {
      if (line + '\n' != kOld && line != "nothing" && !metrics.eof() &&
          !nlohmann::json::accept(line)) {
        return false;
      }
    }
    return true;
  }

  fs::path folder_, work_;
  WritingRun run_;
};

TEST_F(RunCrash, LeavesOldOrNewAtEveryCall) {
  const Recorded recorded = record(run_);
  ASSERT_EQ(recorded.ended.status, 0) << recorded.ended.err;
  const Files whole = look(work_);
  EXPECT_EQ(whole, without_staging(whole));
  EXPECT_EQ(fault(whole, whole), "");
  ASSERT_GE(count(recorded.calls), 30);

  for (long call = 1; call <= count(recorded.calls); ++call) {
    const Ended killed = run_with_fault(run_, "kill", call);

    EXPECT_EQ(killed.status, 128 + SIGKILL) << call;
    EXPECT_EQ(fault(look(work_), whole), "") << call << describe(look(work_));
    EXPECT_TRUE(has_whole_lines(look(work_))) << call;
  }
}

TEST_F(RunCrash, LeavesOldOrNewAndAnErrorWhereTheDiskIsFullFromACallOn) {
  const Recorded recorded = record(run_);
  const Files whole = look(work_);

  for (long call = 1; call <= count(recorded.calls); call += 3) {
    const Ended failed = run_with_fault(run_, "fail-on", call);
    const Files left = look(work_);

    EXPECT_EQ(fault(left, whole), "") << call << describe(left);
    EXPECT_EQ(left, without_staging(left)) << call;
    if (failed.status == 0) {
      EXPECT_EQ(at(left, "out/model.safetensors"), at(whole, "out/model.safetensors")) << call;
    } else {
      EXPECT_NE(failed.err.find("no space left on device"), std::string::npos)
          << call << ' ' << failed.err;
    }
  }
}

TEST_F(RunCrash, LeavesOldOrNewWhereThePowerFails) {
  const Recorded recorded = record(run_);
  ASSERT_EQ(recorded.ended.status, 0) << recorded.ended.err;
  const Files whole = look(work_);
  const Allowed allowed = [&](const Files& files, bool complete) {
    for (const char* const name : kOutputs) {
      const bool is_new = at(files, name) == at(whole, name);
      const bool is_model = name == kWeights || name == kConfig;
      if (!is_new && (complete || (at(files, name) != kOld && !is_model))) {
        return false;
      }
    }
    if (!may_be_model(files, whole)) {
      return false;
    }
    return complete ? at(files, "metrics") == at(whole, "metrics") && at(files, "metrics.1") == kOld
                    : at(files, "metrics") == kOld || at(files, "metrics.1") == kOld;
  };

  EXPECT_EQ(power_loss_fault(recorded, allowed), "");
}

}  // namespace
}  // namespace piper::testing
