#include "core/base/output_check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace piper {
namespace {

namespace fs = std::filesystem;

class OutputCheck : public ::testing::Test {
 protected:
  OutputCheck() : folder_(fs::temp_directory_path() / ("piper_check_" + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "data");
    put("data/a.txt");
    put("job.toml");
    before_ = names();
  }
  ~OutputCheck() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  void put(const std::string& name) const { std::ofstream(path(name)) << "text"; }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      names.insert(entry.path());
    }
    return names;
  }

  Output file(const std::string& name) const { return {"metrics.file", path(name), {"job", 3, 1}}; }
  Output weights(const std::string& name) const {
    return {"last_save_path", path(name), {"job", 5, 1}, {"model.safetensors", "config.json"}};
  }
  std::vector<Input> inputs() const {
    return {{"the job", path("job.toml")}, {"dataset_path", path("data")}};
  }

  // The code of the only error, "" where there is none.
  static std::string code(const Status& status) {
    return status ? "" : status.error().size() == 1 ? status.error()[0].code : "several";
  }

  fs::path folder_;
  std::set<std::string> before_;
};

TEST_F(OutputCheck, TakesWhatCanBeMadeAndLeavesNothing) {
  const Status status =
      check_outputs({file("new/folder/m.jsonl"), weights("out/a/b"), file("m.jsonl")}, inputs());

  EXPECT_TRUE(status) << to_string(status.error());
  EXPECT_EQ(names(), before_);
}

TEST_F(OutputCheck, RefusesWhatCannotBeWrittenAtItsPlace) {
  Output nowhere = weights("");
  nowhere.path = "/proc/x";
  const std::vector<Output> outputs{file("job.toml/m"), file("data"), weights("job.toml"),
                                    weights("job.toml/out"), nowhere};
  for (const Output& output : outputs) {
    const Status status = check_outputs({output}, inputs());

    EXPECT_EQ(code(status), "output.unwritable") << output.path;
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error()[0].where, output.where);
    EXPECT_EQ(status.error()[0].message.find(output.what + ": expected a file that can be written"),
              0u)
        << status.error()[0].message;
  }
  EXPECT_EQ(names(), before_);
}

TEST_F(OutputCheck, SaysEveryFault) {
  const Status status = check_outputs({file("data"), weights("job.toml")}, inputs());

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().size(), 2u);
}

TEST_F(OutputCheck, RefusesAFileThatTheJobReadsHoweverItIsReached) {
  fs::create_symlink("data/a.txt", path("link"));
  fs::create_symlink("data", path("folder"));
  fs::create_hard_link(path("data/a.txt"), path("same"));
  for (const char* const name :
       {"data/a.txt", "data/../data/a.txt", "link", "folder/a.txt", "same", "job.toml"}) {
    EXPECT_EQ(code(check_outputs({file(name)}, inputs())), "output.is_input") << name;
  }
  EXPECT_TRUE(check_outputs({file("data/b.txt")}, inputs()));
}

TEST_F(OutputCheck, SavesOverTheWeightsThatWereLoadedButOverNoOtherInput) {
  fs::create_directories(path("model"));
  put("model/model.safetensors");
  const Input model{"hf_assets_path", path("model"), true};

  EXPECT_TRUE(check_outputs({weights("model")}, {model}));
  EXPECT_EQ(code(check_outputs({weights("model")}, {{"dataset_path", path("model")}, model})),
            "output.is_input");
  EXPECT_EQ(code(check_outputs({file("model/model.safetensors")}, {model})), "output.is_input");
}

TEST_F(OutputCheck, RefusesTwoOutputsInOneFile) {
  fs::create_symlink("nothing", path("link"));
  EXPECT_EQ(code(check_outputs({file("new/m"), file("new/../new/m")}, {})), "output.twice");
  EXPECT_EQ(code(check_outputs({file("nothing"), file("link")}, {})), "output.twice");
  EXPECT_EQ(code(check_outputs({weights("out"), file("out/config.json")}, {})), "output.twice");
  EXPECT_TRUE(check_outputs({weights("out"), file("out/metrics.jsonl")}, {}));
  Output null = file("");
  null.path = "/dev/null";
  EXPECT_TRUE(check_outputs({null, null}, {}));
}

TEST_F(OutputCheck, RefusesMoreThanTheDiskHasRoomFor) {
  Output large = weights("out");
  large.bytes = std::int64_t{1} << 60;

  const Status status = check_outputs({large}, {});

  EXPECT_EQ(code(status), "output.no_room");
  EXPECT_NE(to_string(status.error()).find("expected room for "), std::string::npos);
}

}  // namespace
}  // namespace piper
