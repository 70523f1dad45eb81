#include "core/base/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/core/base/scratch_folder.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

class Lock : public ScratchFolder {
 protected:
  Lock() : ScratchFolder("lock") {}

  // A process that takes the lock and sleeps; after return it has it.
  pid_t hold() const {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto lock = FolderLock::take(folder_);
      const char byte = lock ? 'y' : 'n';
      [[maybe_unused]] const ssize_t written = ::write(ready[1], &byte, 1);
      ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
    return child;
  }
  static void kill(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
};

TEST_F(Lock, RefusesAFolderThatAnotherProcessHasAndNamesThat) {
  const pid_t other = hold();
  OutputOptions options;
  options.where = {"job.toml", 3, 1};

  const auto refused = FolderLock::take(folder_, options);
  kill(other);

  const std::string text = text_of(refused);
  EXPECT_TRUE(text.starts_with(
      "job.toml:3:1: error: expected an output that no other job writes, "
      "got '" +
      folder_.string() + "', which is in use by process " + std::to_string(other) + " ("))
      << text;
  EXPECT_NE(text.find("core_file_lock_test"), std::string::npos) << text;
  EXPECT_NE(text.find("), started 20"), std::string::npos) << text;
}

TEST_F(Lock, IsGoneWithItsProcessAndLeavesNothing) {
  kill(hold());

  EXPECT_EQ(text_of(FolderLock::take(folder_)), "ok");
  EXPECT_EQ(names(), Names{});
}

TEST_F(Lock, IsGoneWithItsObject) {
  {
    auto lock = FolderLock::take(folder_);
    ASSERT_TRUE(lock);
    const FolderLock moved = std::move(*lock);
    EXPECT_FALSE(FolderLock::take(folder_));
  }

  EXPECT_TRUE(FolderLock::take(folder_));
}

TEST_F(Lock, IsNotLeftToProgramsThatAreStarted) {
  std::optional<FolderLock> lock;
  {
    auto taken = FolderLock::take(folder_);
    ASSERT_TRUE(taken);
    lock = std::move(*taken);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(127);
  }
  ::usleep(100000);
  lock.reset();

  const auto again = FolderLock::take(folder_);
  kill(child);

  EXPECT_EQ(text_of(again), "ok");
}

TEST_F(Lock, SeesTheSameFolderUnderAnotherName) {
  fs::create_directory_symlink(folder_, path("self"));
  const auto lock = FolderLock::take(folder_);
  ASSERT_TRUE(lock);

  EXPECT_FALSE(FolderLock::take(path("self")));
}

// As flock of util-linux does it.
TEST_F(Lock, RespectsALockThatIsNotOurs) {
  const int descriptor = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);

  EXPECT_FALSE(FolderLock::take(folder_));
  ::close(descriptor);
}

}  // namespace
}  // namespace piper::testing
