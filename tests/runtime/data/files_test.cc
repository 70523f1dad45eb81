#include "runtime/data/files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::expect_error;
using testing::Folder;

const Location kWhere{"job.toml", 7, 1};

std::vector<std::string> names(const std::vector<SourceFile>& files) {
  std::vector<std::string> names;
  for (const SourceFile& file : files) {
    names.push_back(std::filesystem::path(file.path).filename().string());
  }
  return names;
}

TEST(Files, ComeInTheOrderOfTheirPathsBytes) {
  const Folder folder;
  for (const char* name : {"b.txt", "a.txt", "B.txt", "a10.txt", "a9.txt"}) {
    folder.write(name, "x");
  }

  const auto files = find_files({folder.path("*.txt")}, kWhere);

  ASSERT_TRUE(files.has_value());
  EXPECT_EQ(names(*files),
            (std::vector<std::string>{"B.txt", "a.txt", "a10.txt", "a9.txt", "b.txt"}));
}

TEST(Files, ComeOnceHoweverManyLinksAndEntriesLeadToThem) {
  const Folder folder;
  folder.write("GPL-3", "text");
  std::filesystem::create_symlink("GPL-3", folder.path("GPL"));

  const auto files = find_files({folder.path("*"), folder.path("GPL-3"), folder.path()}, kWhere);

  ASSERT_TRUE(files.has_value());
  EXPECT_EQ(names(*files), std::vector<std::string>{"GPL-3"});
}

TEST(Files, OfAFolderAreSearchedToTheBottomWithoutHiddenOnes) {
  const Folder folder;
  folder.write("one.txt", "x");
  folder.write("deep/er/two.txt", "x");
  folder.write(".git/config", "x");
  std::filesystem::create_directory_symlink(folder.path(), folder.path("deep/loop"));

  const auto files = find_files({folder.path()}, kWhere);

  ASSERT_TRUE(files.has_value());
  EXPECT_EQ(names(*files), (std::vector<std::string>{"two.txt", "one.txt"}));
}

TEST(Files, AnEntryThatNamesNothingIsAnErrorAtItsKey) {
  const Folder folder;

  expect_error(find_files({folder.path("none.txt")}, kWhere), "data.no_files",
               "job.toml:7:1: error: no file or folder '" + folder.path("none.txt") + "'");
  expect_error(find_files({folder.path("*.txt")}, kWhere), "data.no_files",
               "no file matches '" + folder.path("*.txt") + "'");
  expect_error(find_files({folder.path()}, kWhere), "data.no_files", "no files in");
  expect_error(find_files({}, kWhere), "data.no_files", "dataset_path is empty");
}

TEST(Files, LargeOnesAreMappedAndReadAlike) {
  const Folder folder;
  std::string text(3 << 20, 'x');
  text[2 << 20] = 'y';
  folder.write("large", text);

  const auto files = find_files({folder.path("large")}, kWhere);
  ASSERT_TRUE(files.has_value());
  auto bytes = FileBytes::open(files->front(), kWhere);

  ASSERT_TRUE(bytes.has_value());
  const FileBytes moved = std::move(*bytes);
  EXPECT_EQ(moved.text(), text);
}

TEST(Files, OneThatShrankSinceItWasFoundIsAnError) {
  const Folder folder;
  folder.write("a", "abc");

  const auto bytes = FileBytes::open({folder.path("a"), 5}, kWhere);

  expect_error(bytes, "data.unreadable", "expected 5 bytes, read 3");
}

}  // namespace
}  // namespace piper
