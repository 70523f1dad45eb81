// Model libraries that a user has built, in the program: what it links is what they find.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/run_program.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

class ModelLibrary : public ::testing::Test {
 protected:
  ModelLibrary()
      : folder_(fs::temp_directory_path() / ("piper_library_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "rows.jsonl") << R"({"tokens": [1, 2, 3, 4], "labels": [1]})" << '\n';
  }
  ~ModelLibrary() override { fs::remove_all(folder_); }

  // What `piper check` says of a job with this library, without the folder.
  Ended check(const std::string& name, const std::string& library) const {
    std::ofstream(folder_ / "job.toml")
        << "[model]\nname = \"" << name << "\"\nlibrary = \"" << library
        << "\"\n[training]\ndataset = \"jsonl\"\ndataset_path = [\"rows.jsonl\"]\n"
           "seq_len = 4\nglobal_batch_size = 1\n";
    return run_program(PIPER_PROGRAM, {"check", "job.toml"}, folder_,
                       {{"PIPER_CACHE", folder_ / "cache"}});
  }

  fs::path folder_;
};

TEST_F(ModelLibrary, WithoutLibTorchIsToldWhichSymbolIsMissingAndWhatToLink) {
  const Ended refused = check("two_tower", PIPER_UNLINKED_MODEL);

  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(refused.err.starts_with("job.toml:3:11: error: cannot open the model library: "))
      << refused.err;
  EXPECT_NE(refused.err.find(": undefined symbol: c10::"), std::string::npos) << refused.err;
  EXPECT_TRUE(refused.err.ends_with(
      " [model.library]\nnote: link the library to LibTorch: -ltorch_cpu -lc10\n"))
      << refused.err;
}

TEST_F(ModelLibrary, ThatIsNoneIsToldWhatTheLoaderSays) {
  std::ofstream(folder_ / "plain.so") << std::string(100, 'x');

  const Ended refused = check("two_tower", "plain.so");

  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(refused.err.ends_with("plain.so: invalid ELF header [model.library]\n"))
      << refused.err;
}

TEST_F(ModelLibrary, OfTheWorkingFolderNeedsNoSlash) {
  fs::create_symlink(PIPER_DROPOUT_MODEL, folder_ / "mine.so");

  const Ended checked = check("dropout", "mine.so");

  EXPECT_EQ(checked.status, 0) << checked.err;
}

TEST_F(ModelLibrary, CallsFunctionsOfTheRuntimeThatItDoesNotLink) {
  const Ended checked = check("dropout", PIPER_DROPOUT_MODEL);

  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(checked.err.find("error"), std::string::npos) << checked.err;
}

TEST_F(ModelLibrary, ThatCrashesIsNamed) {
  const Ended crashed = check("crashing", PIPER_CRASHING_MODEL);

  EXPECT_TRUE(crashed.err.starts_with("error: model library '" PIPER_CRASHING_MODEL
                                      "' crashed in build (signal 6, SIGABRT) [model.crashed]\n"))
      << crashed.err;
  EXPECT_NE(crashed.status, 0);
}

}  // namespace
}  // namespace piper::testing
