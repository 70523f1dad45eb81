#include "core/config/raw.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/config/job.h"

namespace piper {
namespace {

using testing::errors;

TEST(JobText, NamesAKeyThatIsGivenTwiceAtItsOwnPlace) {
  EXPECT_EQ(errors("[training]\nsteps = 3\n  steps = 4\n"),
            "job.toml:3:3: error: key 'steps' is given twice [config.duplicate_key]\n"
            "job.toml:2:1: note: first given here");
}

TEST(JobText, FindsTheFirstKeyInTheRightStrategy) {
  EXPECT_EQ(errors("[[strategy]]\nplugin = \"a\"\n[[strategy]]\nplugin = \"b\"\nplugin = \"c\"\n"),
            "job.toml:5:1: error: key 'plugin' is given twice [config.duplicate_key]\n"
            "job.toml:4:1: note: first given here");
}

TEST(JobText, NamesASectionThatIsGivenTwice) {
  EXPECT_EQ(errors("[training]\nsteps = 3\n[mesh]\n[training]\n"),
            "job.toml:4:1: error: section [training] is given twice [config.duplicate_section]\n"
            "job.toml:1:1: note: first given here");
}

TEST(JobText, SaysPlainlyThatAFileIsEmpty) {
  EXPECT_EQ(errors(""), "job.toml: error: expected a job file, got an empty file [config.empty]");
  EXPECT_EQ(errors("# nothing yet\n"),
            "job.toml: error: expected a job file, got one without any section [config.empty]");
}

TEST(JobText, RefusesAFolderAndAMissingFile) {
  const auto folder = load_config("/", {});
  const auto missing = load_config("/no/such/job.toml", {});

  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(to_string(folder.error()),
            "/: error: expected a job file, got a directory [config.file]");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(to_string(missing.error()),
            "/no/such/job.toml: error: expected a job file, got no such file [config.file]");
}

TEST(JobText, PointsAtTheFirstByteThatIsNotUtf8) {
  EXPECT_EQ(errors("[model]\nname = \"\xC3\xA4\xFF\"\n"),
            "job.toml:2:10: error: expected UTF-8, got the byte 0xff [config.encoding]");
  EXPECT_EQ(errors("a = \"\xED\xA0\x80\"\n"),
            "job.toml:1:6: error: expected UTF-8, got the byte 0xed [config.encoding]");
}

TEST(JobText, ReportsWhatIsNotToml) {
  EXPECT_EQ(errors("[training\nsteps = 3\n"),
            "job.toml:1:10: error: not TOML: table header: expected ']', saw '\\n' "
            "[config.syntax]");
}

TEST(JobText, RefusesTextsThatAreTooLongToBeJobs) {
  EXPECT_EQ(errors(std::string(33 * 1024, '#')),
            "job.toml: error: expected a job file of at most 32 KiB, got more [config.too_long]");
}

TEST(JobText, SurvivesDeepNesting) {
  std::string dotted = "[a";
  for (int i = 0; i < 16'000; ++i) {
    dotted += ".a";
  }
  dotted += "]\n";
  EXPECT_NE(errors(dotted).find("[config.unknown_section]"), std::string::npos);
  EXPECT_NE(errors("a = " + std::string(30'000, '[')).find("[config.syntax]"), std::string::npos);
}

TEST(JobText, CountsColumnsInCharacters) {
  EXPECT_EQ(errors("[model]\nfreeze = [\"\xC3\xA4\xC3\xB6\", 3]\n"),
            "job.toml:2:17: error: model.freeze: expected a text or a list of texts, got 3 "
            "[config.type]");
}

TEST(JobText, AcceptsAByteOrderMarkAndCarriageReturns) {
  EXPECT_EQ(errors("\xEF\xBB\xBF[training]\r\nsteps = 3\r\n"), "");
}

}  // namespace
}  // namespace piper
