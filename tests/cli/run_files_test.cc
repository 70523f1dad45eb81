// What runs of the program do with their files and streams. Needs the runtime.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

class RunFiles : public ::testing::Test {
 protected:
  RunFiles()
      : folder_(fs::temp_directory_path() / ("piper_run_files_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "text");
    for (int document = 0; document < 10; ++document) {
      std::ofstream(folder_ / "text" / std::to_string(document))
          << std::string(100, static_cast<char>('a' + document));
    }
    std::ofstream(folder_ / "job.toml") << R"([model]
layers = 2
dim = 8
heads = 2
ffn = 16
vocab = 257
[training]
dataset_path = "text/*"
seq_len = 8
global_batch_size = 6
microbatches = 3
steps = 4
[mesh]
pp = 2
[[strategy]]
plugin = "interleaved1f1b"
)";
  }
  ~RunFiles() override { fs::remove_all(folder_); }

  // `piper` in a script is the program.
  Ended shell(const std::string& script) const {
    return run_program("/bin/sh", {"-c", "piper() { " PIPER_PROGRAM " \"$@\"; }\n" + script},
                       folder_, {{"PIPER_CACHE", PIPER_BINARY_DIR "/tests/cache"}});
  }
  std::vector<std::string> lines(const std::string& name) const {
    std::vector<std::string> lines;
    std::ifstream stream(folder_ / name);
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  fs::path folder_;
};

TEST_F(RunFiles, RefuseASecondJobOnAnOutputOfTheFirst) {
  for (const std::string output :
       {"--checkpoint.last_save_path=out", "--metrics.file=m", "--profiling.trace=t",
        "--costs=c.toml", "--save-gradients=g.safetensors"}) {
    const Ended ended = shell(PIPER_PROGRAM " train job.toml --training.steps=1000000 " + output +
                              " >first 2>&1 & p=$!\n"
                              "until grep -q '^step 2 ' first; do sleep 0.05; done\n"
                              "piper train job.toml --no-progress " +
                              output +
                              " >second 2>why; echo $? $p\nkill -9 $p; wait $p\n"
                              "piper train job.toml --no-progress " +
                              output + " >third; echo $?\n");
    const std::string process = ended.out.substr(2, ended.out.find('\n') - 2);
    const std::vector<std::string> why = lines("why");

    EXPECT_EQ(ended.out, "2 " + process + "\n0\n") << output << ended.err;
    ASSERT_FALSE(why.empty());
    EXPECT_NE(why.back().find(", which is in use by process " + process + " ("), std::string::npos)
        << why.back();
    EXPECT_NE(why.back().find("piper train job.toml --training.steps=1000000"), std::string::npos);
    EXPECT_TRUE(why.back().ends_with("[file.in_use]")) << why.back();
    for (const std::string& line : lines("second")) {
      EXPECT_FALSE(line.starts_with("step 1 ")) << line;
    }
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().string().find(".piper-"), std::string::npos) << entry.path();
  }
}

TEST_F(RunFiles, GoOnToTheEndWhereStandardOutputIsFull) {
  const Ended full = shell(
      "piper train job.toml --no-progress --metrics.file=m --checkpoint.last_save_path=out "
      ">/dev/full");

  EXPECT_EQ(full.status, 1);
  EXPECT_TRUE(full.err.starts_with("error: standard output cannot be written")) << full.err;
  EXPECT_TRUE(full.err.ends_with("[cli.stdout]\n")) << full.err;
  EXPECT_EQ(lines("m").size(), 4U);
  EXPECT_TRUE(fs::exists(folder_ / "out" / "model.safetensors"));
}

TEST_F(RunFiles, PrintNothingIntoAFileWhereStreamsAreClosed) {
  const Ended closed = shell("piper train job.toml --metrics.file=m <&- >&- 2>&-");

  EXPECT_EQ(closed.status, 0);
  EXPECT_EQ(lines("m").size(), 4U);
  for (const std::string& line : lines("m")) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

TEST_F(RunFiles, WriteThroughLinksDevicesAndPipes) {
  fs::create_symlink("/dev/null", folder_ / "null");
  fs::create_symlink("real", folder_ / "link");
  std::ofstream(folder_ / "real") << "old";
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);

  const Ended ended = shell(
      "piper train job.toml --no-progress --save-gradients null --profiling.trace=link "
      "--metrics.file=pipe >said & cat pipe >read; wait $!");

  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(fs::is_symlink(folder_ / "null"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  EXPECT_EQ(lines("read").size(), 4U);
  std::ifstream trace(folder_ / "real");
  EXPECT_TRUE(nlohmann::json::accept(std::string{std::istreambuf_iterator<char>(trace), {}}));
}

TEST_F(RunFiles, KeepTheMetricsOfTheRunBefore) {
  ASSERT_EQ(shell("piper train job.toml --no-progress --metrics.file=m").status, 0);
  const std::vector<std::string> before = lines("m");

  ASSERT_EQ(shell("piper train job.toml --no-progress --metrics.file=m --training.steps=2").status,
            0);

  EXPECT_EQ(lines("m").size(), 2U);
  EXPECT_EQ(lines("m.1"), before);
}

}  // namespace
}  // namespace piper::testing
