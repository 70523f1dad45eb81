#include "core/base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "tests/core/base/scratch_folder.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

class Output : public ScratchFolder {
 protected:
  Output() : ScratchFolder("output") {}
};

TEST_F(Output, LeavesTheOldFileUntilItIsPublished) {
  put("a", "old");
  auto file = OutputFile::create(path("a"));
  ASSERT_TRUE(file) << to_string(file.error());

  ASSERT_TRUE(file->write("ne"));
  ASSERT_TRUE(file->write("w"));
  EXPECT_EQ(get("a"), "old");
  ASSERT_TRUE(file->stage());
  EXPECT_EQ(get("a"), "old");
  ASSERT_TRUE(file->publish());

  EXPECT_EQ(get("a"), "new");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(Output, LeavesNothingOfAFileThatIsNotPublished) {
  put("a", "old");
  {
    auto file = OutputFile::create(path("a"));
    ASSERT_TRUE(file && file->write("new") && file->stage());
    EXPECT_EQ(names().size(), 2U);
  }

  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(Output, StagesUnderANameOfItsOwnHoweverOftenOneTargetIsOpen) {
  auto first = OutputFile::create(path("a"));
  auto second = OutputFile::create(path("a"));
  ASSERT_TRUE(first && second);
  const std::set<std::string> staged = names();
  ASSERT_TRUE(first->write("first") && second->write("second"));
  ASSERT_TRUE(second->commit() && first->commit());

  EXPECT_EQ(staged.size(), 2U);
  for (const std::string& name : staged) {
    EXPECT_TRUE(name.starts_with(".a.piper-" + std::to_string(::getpid()) + '-')) << name;
  }
  EXPECT_EQ(get("a"), "first");
}

TEST_F(Output, KeepsTheModeOfTheFileThatItReplaces) {
  put("a", "old");
  ::chmod(path("a").c_str(), 0640);
  const mode_t before = ::umask(027);
  const Status replaced = write_file(path("a"), "new");
  const Status made = write_file(path("b"), "new");
  ::umask(before);

  EXPECT_TRUE(replaced && made);
  EXPECT_EQ(mode("a"), 0640U);
  EXPECT_EQ(mode("b"), 0640U) << "0666 less the umask";
}

TEST_F(Output, WritesThroughALinkOfAnyLengthAndLeavesIt) {
  fs::create_directory(folder_ / "far");
  put("far/real", "old");
  fs::create_symlink("far/near", folder_ / "link");
  fs::create_symlink("real", folder_ / "far" / "near");

  const Status written = write_file(path("link"), "new");

  EXPECT_EQ(text_of(written), "ok");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "far" / "near"));
  EXPECT_EQ(get("far/real"), "new");
  EXPECT_EQ(names("far"), (std::set<std::string>{"near", "real"}));
}

TEST_F(Output, MakesTheTargetOfALinkToNothing) {
  fs::create_symlink("real", folder_ / "link");

  EXPECT_EQ(text_of(write_file(path("link"), "new")), "ok");

  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(get("real"), "new");
}

TEST_F(Output, ReplacesALinkWhereItIsToldTo) {
  put("shared", "old");
  fs::create_symlink("shared", folder_ / "link");
  OutputOptions options;
  options.replace_link = true;

  EXPECT_EQ(text_of(write_file(path("link"), "new", options)), "ok");

  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "link")));
  EXPECT_EQ(get("link"), "new");
  EXPECT_EQ(get("shared"), "old");
}

TEST_F(Output, NamesALoopOfLinks) {
  fs::create_symlink("a", folder_ / "b");
  fs::create_symlink("b", folder_ / "a");

  EXPECT_EQ(text_of(write_file(path("a"), "new")),
            "error: expected a file that can be written, got '" + path("a") +
                "': too many levels of symbolic links [file.write]");
}

TEST_F(Output, WritesThroughAPipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = get("pipe"); });

  const Status written = write_file(path("pipe"), "new");
  reader.join();

  EXPECT_EQ(text_of(written), "ok");
  EXPECT_EQ(read, "new");
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  EXPECT_EQ(names(), std::set<std::string>{"pipe"});
}

TEST_F(Output, WritesThroughALinkToADevice) {
  fs::create_symlink("/dev/null", folder_ / "link");
  fs::create_symlink("/dev/full", folder_ / "full");

  EXPECT_EQ(text_of(write_file(path("link"), "new")), "ok");
  EXPECT_EQ(text_of(write_file(path("full"), "new")),
            "error: expected a file that can be written, got '" + path("full") +
                "': no space left on device [file.write]");

  EXPECT_EQ(names(), (std::set<std::string>{"link", "full"}));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// What follows on standard output comes after it, and the file that it is stays that file.
TEST_F(Output, WritesToADescriptorOfItsOwnThatIsAFile) {
  const int descriptor = ::open(path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::write(descriptor, "1 ", 2), 2);

  const Status written = write_file("/dev/fd/" + std::to_string(descriptor), "2 ");
  ASSERT_EQ(::write(descriptor, "3", 1), 1);
  ::close(descriptor);

  EXPECT_EQ(text_of(written), "ok");
  EXPECT_EQ(get("out"), "1 2 3");
}

TEST_F(Output, MakesTheFoldersThatAreMissing) {
  EXPECT_EQ(text_of(write_file(path("x/y//z/a"), "new")), "ok");

  EXPECT_EQ(get("x/y/z/a"), "new");
}

TEST_F(Output, NamesTheFileAndTheReasonWithTheCodeAndThePlaceOfItsCaller) {
  put("a", "old");
  OutputOptions options;
  options.code = "some.code";
  options.where = {"job.toml", 3, 1};

  EXPECT_EQ(text_of(write_file(path("a/b"), "new", options)),
            "job.toml:3:1: error: expected a file that can be written, got '" + path("a/b") +
                "': not a directory [some.code]");
  EXPECT_EQ(text_of(write_file(folder_, "new", options)),
            "job.toml:3:1: error: expected a file that can be written, got '" + folder_.string() +
                "': is a directory [some.code]");
}

TEST_F(Output, TakesNamesAsLongAsTheyMayBe) {
  EXPECT_EQ(text_of(write_file(path(std::string(255, 'n')), "new")), "ok");
  EXPECT_EQ(names(), std::set<std::string>{std::string(255, 'n')});
}

TEST_F(Output, RemovesWhatAKilledProcessLeftAndNothingElse) {
  const std::string other = ".a.piper-12-x", folder = ".a.piper-1-1", longer = ".ab.piper-1-1";
  put(other, "");
  put(longer, "");
  fs::create_directory(folder_ / folder);
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = OutputFile::create(path("a"));
    ::_exit(file && file->write("half") ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(names().size(), 4U);
  const auto open = OutputFile::create(path("a"));

  EXPECT_EQ(names().count(".a.piper-" + std::to_string(child) + "-0"), 0U);
  EXPECT_EQ(text_of(write_file(path("a"), "new")), "ok");
  EXPECT_EQ(names().size(), 5U) << "the file, what is open, and what is not ours";
}

TEST_F(Output, IsAloneWhereItAsksForThat) {
  OutputOptions options;
  options.exclusive = true;
  options.where = {"job.toml", 3, 1};
  auto first = OutputFile::create(path("a"), options);
  ASSERT_TRUE(first);

  const auto second = OutputFile::create(path("a"), options);
  const auto other = OutputFile::create(path("b"), options);
  const auto modest = OutputFile::create(path("a"));
  ASSERT_TRUE(first->commit());
  const auto third = OutputFile::create(path("a"));

  EXPECT_TRUE(text_of(second).starts_with(
      "job.toml:3:1: error: expected an output that no other job writes, got '" + path("a") +
      "', which is in use by process " + std::to_string(::getpid()) + " ("))
      << text_of(second);
  EXPECT_TRUE(text_of(second).ends_with("[file.in_use]")) << text_of(second);
  EXPECT_TRUE(other && modest && third);
}

TEST_F(Output, LooksAtATargetAndLeavesNothing) {
  put("a", "old");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const std::set<std::string> before = names();

  for (const std::string name : {"a", "b", "x/y/z", "pipe"}) {
    EXPECT_EQ(text_of(check_writable(path(name), {})), "ok") << name;
  }
  for (const std::string& name : {path("a/b"), path("a/b/c"), folder_.string(), path("x/"),
                                  std::string("/proc/x"), std::string("/proc/x/y/z")}) {
    const Status looked = check_writable(name, {});
    EXPECT_TRUE(text_of(looked).starts_with("error: expected a file that can be written, got '" +
                                            name + "': "))
        << text_of(looked);
  }

  EXPECT_EQ(names(), before);
  EXPECT_EQ(get("a"), "old");
}

TEST_F(Output, LeavesAFileThatIsProtected) {
  if (::geteuid() == 0) {
    ASSERT_EQ(::seteuid(65534), 0);  // root may write everything
  }
  const std::string mine =
      fs::temp_directory_path() / ("piper_protected_" + std::to_string(::getpid()));
  { std::ofstream(mine, std::ios::binary) << "old"; }
  ::chmod(mine.c_str(), 0400);
  const Status looked = check_writable(mine, {}), written = write_file(mine, "new");
  ::unlink(mine.c_str());
  if (::getuid() == 0) {
    ASSERT_EQ(::seteuid(0), 0);
  }

  EXPECT_TRUE(text_of(looked).ends_with(": permission denied [file.write]")) << text_of(looked);
  EXPECT_TRUE(text_of(written).ends_with(": permission denied [file.write]")) << text_of(written);
}

TEST(ParentFolder, IsWhatStandsBeforeTheLastName) {
  EXPECT_EQ(parent_folder("a"), ".");
  EXPECT_EQ(parent_folder("a/b"), "a");
  EXPECT_EQ(parent_folder("a//b/"), "a");
  EXPECT_EQ(parent_folder("/a"), "/");
  EXPECT_EQ(parent_folder("/"), "/");
}

}  // namespace
}  // namespace piper::testing
