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

std::vector<std::string> below(const Folder& folder, const std::vector<SourceFile>& files) {
  std::vector<std::string> names;
  for (const SourceFile& file : files) {
    names.push_back(file.path.substr(folder.path().size() + 1));
  }
  return names;
}

TEST(Files, TwoStarsAreAnyNumberOfFolders) {
  const Folder folder;
  for (const char* name : {"a.txt", "x/b.txt", "x/y/c.txt", "x/y/c.md", "x/.hidden/d.txt"}) {
    folder.write(name, "x");
  }
  std::filesystem::create_directory_symlink(folder.path(), folder.path("x/y/loop"));
  const auto found = [&](const std::string& pattern) {
    const auto files = find_files({folder.path(pattern)}, kWhere);
    EXPECT_TRUE(files.has_value()) << to_string(files.error());
    return files ? below(folder, *files) : std::vector<std::string>();
  };

  EXPECT_EQ(found("**/*.txt"), (std::vector<std::string>{"a.txt", "x/b.txt", "x/y/c.txt"}));
  EXPECT_EQ(found("x/**/c.*"), (std::vector<std::string>{"x/y/c.md", "x/y/c.txt"}));
  EXPECT_EQ(found("**/y/**/*.txt"), (std::vector<std::string>{"x/y/c.txt"}));
  EXPECT_EQ(found("?/**"), (std::vector<std::string>{"x/b.txt", "x/y/c.md", "x/y/c.txt"}));
  EXPECT_EQ(found("**"), (std::vector<std::string>{"a.txt", "x/b.txt", "x/y/c.md", "x/y/c.txt"}));
  // Two stars inside of a name are one.
  EXPECT_EQ(found("**.txt"), (std::vector<std::string>{"a.txt"}));
}

TEST(Files, TwoStarsReadTheNamesOfFoldersAsTheyStand) {
  const Folder folder;
  folder.write("[a]*/deep/one.txt", "x");
  folder.write("a/deep/two.txt", "x");

  const auto files = find_files({folder.path("**/deep/*.txt")}, kWhere);

  ASSERT_TRUE(files.has_value()) << to_string(files.error());
  EXPECT_EQ(names(*files), (std::vector<std::string>{"one.txt", "two.txt"}));
  expect_error(find_files({folder.path("**/*.md")}, kWhere), "data.no_files",
               "no file matches '" + folder.path("**/*.md") + "'");
}

TEST(Files, TwoStarsAloneBeginInTheWorkingFolder) {
  const Folder folder;
  folder.write("x/one.txt", "x");
  const std::filesystem::path before = std::filesystem::current_path();

  std::filesystem::current_path(folder.path());
  const auto files = find_files({"**/*.txt"}, kWhere);
  std::filesystem::current_path(before);

  ASSERT_TRUE(files.has_value()) << to_string(files.error());
  EXPECT_EQ(below(folder, *files), (std::vector<std::string>{"x/one.txt"}));
}

}  // namespace
}  // namespace piper
