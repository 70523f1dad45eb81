// A model that is put into a folder, stopped at each call, or by a power failure after each: the
// folder loads as the old model or as the new one, or is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/support/fault_run.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})";

// What is in the folder before, by name.
using Before = std::map<std::string, std::string>;
const Before kNothing;
const Before kOneFile{{"config.json", "old"}, {"model.safetensors", "old"}, {"README.md", "kept"}};
const Before kSeveral{{"config.json", "old"},
                      {"1.safetensors", "old"},
                      {"2.safetensors", "old"},
                      {"model.safetensors.index.json", kIndex},
                      {"README.md", "kept"}};
const Before kOnlyWeightsChange{{"config.json", "new"},
                                {"1.safetensors", "old"},
                                {"2.safetensors", "old"},
                                {"model.safetensors.index.json", kIndex}};

class ModelCrash : public ::testing::TestWithParam<Before> {
 protected:
  ModelCrash()
      : folder_(fs::canonical(fs::temp_directory_path()) /
                ("piper_model_crash_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~ModelCrash() override { fs::remove_all(folder_); }

  WritingRun run() const {
    return {PIPER_WRITES_MODEL, {"model", "new", "new"}, folder_, {}, [this] {
              for (const auto& [name, text] : GetParam()) {
                fs::create_directories(folder_ / "model");
                std::ofstream(folder_ / "model" / name, std::ios::binary) << text;
              }
            }};
  }

  // What Piper and transformers load: config.json, then the weights' one file, else those of the
  // index. "old", "new" or "refused"; "mixture" is none of them.
  std::string loads_as(const Files& files) const {
    const auto at = [&](const std::string& name) -> std::string {
      const auto found = files.find(folder_ / "model" / name);
      return found == files.end() ? "" : found->second;
    };
    const std::string config = at("config.json"), one = at("model.safetensors");
    const bool indexed = at("model.safetensors.index.json") == kIndex;
    const std::string weights = !one.empty() ? one
                                : indexed && at("1.safetensors") == at("2.safetensors")
                                    ? at("1.safetensors")
                                    : "";
    if (config.empty() || weights.empty()) {
      return "refused";
    }
    const bool same_config =
        GetParam().contains("config.json") && GetParam().at("config.json") == "new";
    return same_config && config == "new" ? weights : config == weights ? config : "mixture";
  }

  Allowed allowed() const {
    return [this](const Files& files, bool complete) {
      const std::string now = loads_as(files);
      const auto readme = files.find(folder_ / "model/README.md");
      const bool kept =
          !GetParam().contains("README.md") || (readme != files.end() && readme->second == "kept");
      return kept && (now == "new" || (!complete && (now == "old" || now == "refused")));
    };
  }

  fs::path folder_;
};

TEST_P(ModelCrash, LeavesOldOrNewWhereItIsKilledAndTheNewOneAfterTheNextRun) {
  const Recorded recorded = record(run());
  ASSERT_EQ(recorded.ended.status, 0) << recorded.ended.err;
  const Files whole = look(folder_);
  ASSERT_GE(count(recorded.calls), 10);
  for (long call = 1; call <= count(recorded.calls); ++call) {
    const Ended killed = run_with_fault(run(), "kill", call);
    const Files left = look(folder_);

    EXPECT_EQ(killed.status, 128 + SIGKILL);
    EXPECT_TRUE(allowed()(without_staging(left), false)) << call << describe(left);

    const Ended again = run_program(run().program, run().arguments, folder_);
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(without_staging(look(folder_)), whole) << call;
  }
}

TEST_P(ModelCrash, LeavesOldOrNewAndSaysWhyWhereACallFails) {
  const long calls = count(record(run()).calls);
  for (long call = 1; call <= calls; ++call) {
    const Ended failed = run_with_fault(run(), "fail", call, ENOSPC);

    EXPECT_TRUE(allowed()(look(folder_), failed.status == 0)) << call << describe(look(folder_));
    if (failed.status != 0) {
      EXPECT_NE(failed.err.find("no space left on device [checkpoint.write]"), std::string::npos)
          << call << failed.err;
    }
  }
}

TEST_P(ModelCrash, LeavesOldOrNewWhereThePowerFails) {
  const Recorded recorded = record(run());
  EXPECT_EQ(power_loss_fault(recorded, allowed()), "");
}

std::string name_of(const ::testing::TestParamInfo<Before>& info) {
  constexpr const char* kNames[] = {"Nothing", "OneFile", "Several", "OnlyWeightsChange"};
  return kNames[info.index];
}

INSTANTIATE_TEST_SUITE_P(Over, ModelCrash,
                         ::testing::Values(kNothing, kOneFile, kSeveral, kOnlyWeightsChange),
                         name_of);

}  // namespace
}  // namespace piper::testing
