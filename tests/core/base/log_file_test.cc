#include "core/base/log_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/core/base/scratch_folder.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

class Log : public ScratchFolder {
 protected:
  Log() : ScratchFolder("log") {}

  // A whole run that writes one line.
  std::string run(const std::string& name, const std::string& line) const {
    auto file = LogFile::create(path(name));
    const Status written = file ? file->write_line(line) : Status();
    return file ? text_of(written) : text_of(file);
  }
};

TEST_F(Log, HasEachLineAsItIsWritten) {
  auto file = LogFile::create(path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write_line("one"));
  EXPECT_EQ(get("a"), "one\n");
  ASSERT_TRUE(file->write_line("two"));

  EXPECT_EQ(get("a"), "one\ntwo\n");
  EXPECT_EQ(text_of(file->flush()), "ok");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(Log, KeepsEveryOlderFileTheYoungestAsOne) {
  for (const char* line : {"first", "second", "third"}) {
    EXPECT_EQ(run("a", line), "ok");
  }

  EXPECT_EQ(names(), (Names{"a", "a.1", "a.2"}));
  EXPECT_EQ(get("a"), "third\n");
  EXPECT_EQ(get("a.1"), "second\n");
  EXPECT_EQ(get("a.2"), "first\n");
}

TEST_F(Log, DoesNotKeepAnEmptyFile) {
  put("a", "");

  EXPECT_EQ(run("a", "line"), "ok");

  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(Log, KeepsTheModeAndTheLinkOfAnOlderFile) {
  fs::create_directory(folder_ / "far");
  put("far/real", "old");
  ::chmod(path("far/real").c_str(), 0600);
  fs::create_symlink("far/real", folder_ / "link");

  EXPECT_EQ(run("link", "new"), "ok");

  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(get("far/real"), "new\n");
  EXPECT_EQ(get("far/real.1"), "old");
  EXPECT_EQ(mode("far/real"), 0600U);
}

TEST_F(Log, RefusesAFileThatAnotherProcessWritesAndTouchesNothing) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = LogFile::create(path("a"));
    const char byte = file && file->write_line("theirs") ? 'y' : 'n';
    [[maybe_unused]] const ssize_t written = ::write(ready[1], &byte, 1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const std::string refused = run("a", "ours");
  EXPECT_EQ(names(), Names{"a"});
  EXPECT_EQ(get("a"), "theirs\n");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);

  EXPECT_NE(refused.find("in use by process " + std::to_string(child) + ' '), std::string::npos)
      << refused;
  EXPECT_TRUE(refused.ends_with("[file.in_use]")) << refused;
  EXPECT_EQ(run("a", "ours"), "ok");
  EXPECT_EQ(get("a.1"), "theirs\n");
}

TEST_F(Log, WritesThroughAPipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = get("pipe"); });

  const std::string written = run("pipe", "line");
  reader.join();

  EXPECT_EQ(written, "ok");
  EXPECT_EQ(read, "line\n");
  EXPECT_EQ(names(), Names{"pipe"});
}

TEST_F(Log, NamesADeviceThatIsFull) {
  fs::create_symlink("/dev/full", folder_ / "full");

  EXPECT_EQ(run("full", "line"), "error: expected a file that can be written, got '" +
                                     path("full") + "': no space left on device [file.write]");
}

TEST_F(Log, TakesBackALineThatIsWrittenInPart) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit most{10, 10};  // bytes a file may have
    auto file = LogFile::create(path("a"));
    const bool fits = file && file->write_line("12345") && ::setrlimit(RLIMIT_FSIZE, &most) == 0;
    ::_exit(fits && !file->write_line("6789012345") ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(get("a"), "12345\n");
}

}  // namespace
}  // namespace piper::testing
