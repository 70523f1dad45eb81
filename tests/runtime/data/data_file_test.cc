#include "runtime/data/data_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::expect_error;
using testing::Folder;

const Location kWhere{"job.toml", 7, 1};

SourceFile found(const std::string& path) {
  return find_files({path}, kWhere)->front();
}

std::string all_of(const DataFile& file) {
  std::string text(file.source().bytes, '\0');
  const Status read = file.read(0, text.size(), text.data());
  return read ? text : to_string(read.error());
}

// The same file with the same size, and a second later.
void touch(const std::string& path) {
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
}

TEST(DataFile, ReadsFromAnyPlace) {
  const Folder folder;
  const auto file = DataFile::open(found(folder.write("a", "abcdef")), kWhere);

  ASSERT_TRUE(file.has_value());
  char text[3];
  ASSERT_TRUE(file->read(2, 3, text).has_value());
  EXPECT_EQ(std::string(text, 3), "cde");
}

TEST(DataFile, OneThatIsCutShortIsAnErrorWithItsName) {
  const Folder folder;
  const std::string path = folder.write("a", "abcdef");
  const auto file = DataFile::open(found(path), kWhere);

  std::filesystem::resize_file(path, 2);

  char text[6];
  expect_error(file->read(4, 2, text), "data.changed",
               path +
                   ": error: the data file has changed since the job looked at it: it had 6 "
                   "bytes, now it has 2");
}

TEST(DataFile, OneThatGrewIsAnError) {
  const Folder folder;
  const std::string path = folder.write("a", "abcdef");
  const auto file = DataFile::open(found(path), kWhere);

  std::ofstream(path, std::ios::app) << "g";

  char text[2];
  expect_error(file->read(0, 2, text), "data.changed", "it had 6 bytes, now it has 7");
}

TEST(DataFile, OneThatWasWrittenToInPlaceIsAnError) {
  const Folder folder;
  const std::string path = folder.write("a", "abcdef");
  const auto file = DataFile::open(found(path), kWhere);

  std::ofstream(path) << "ABCDEF";
  touch(path);

  char text[6];
  expect_error(file->read(0, 6, text), "data.changed", "it was written to");
}

TEST(DataFile, OneThatIsReplacedOrRemovedIsReadAsItWas) {
  const Folder folder;
  const std::string path = folder.write("a", "abcdef");
  const auto file = DataFile::open(found(path), kWhere);

  std::filesystem::rename(folder.write("b", "other, and longer"), path);
  EXPECT_EQ(all_of(*file), "abcdef");

  std::filesystem::remove(path);
  EXPECT_EQ(all_of(*file), "abcdef");
}

TEST(DataFile, OneThatIsAnotherThanTheOneFoundIsAnError) {
  const Folder folder;
  const std::string path = folder.write("a", "abc");
  const SourceFile before = found(path);

  std::filesystem::rename(folder.write("b", "xyz"), path);

  expect_error(DataFile::open(before, kWhere), "data.changed", path);
}

// More files than the process may have open: the limit is lowered, as `ulimit -n` does.
TEST(DataFile, MoreFilesThanDescriptorsAreReadAlike) {
  const Folder folder;
  for (int i = 0; i < 300; ++i) {
    folder.write("f" + std::to_string(1000 + i), std::to_string(i));
  }
  const auto files = find_files({folder.path()}, kWhere);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit lower = {266, before.rlim_max};

  // The soft limit is raised for the data.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  const auto opened = open_files(*files, kWhere);
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);

  ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
  EXPECT_EQ(after.rlim_cur, 300u + 256u);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(all_of((*opened)[static_cast<std::size_t>(i)]), std::to_string(i));
  }
}

TEST(DataFile, BeyondTheHardLimitTheSmallestFilesAreInMemory) {
  const Folder folder;
  folder.write("large", "a large file");
  folder.write("small", "small");
  const auto files = find_files({folder.path()}, kWhere);
  const auto opened = DataFile::load((*files)[1], kWhere);
  ASSERT_TRUE(opened.has_value());

  std::filesystem::resize_file(folder.path("small"), 0);

  EXPECT_EQ(all_of(*opened), "small");
  // In a child process: a hard limit cannot be raised again.
  EXPECT_EXIT(
      {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 257;
        setrlimit(RLIMIT_NOFILE, &limit);
        folder.write("small", "small");
        const auto again = open_files(*find_files({folder.path()}, kWhere), kWhere);
        std::filesystem::resize_file(folder.path("small"), 0);
        std::filesystem::resize_file(folder.path("large"), 0);
        const bool kept = again && all_of((*again)[1]) == "small";
        const bool changed = again && all_of((*again)[0]).find("data.changed") != std::string::npos;
        std::_Exit(kept && changed ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace piper
