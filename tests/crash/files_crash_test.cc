// Each way of writing a file, stopped at each of its calls.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/fault_run.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

// A way of writing, and what may be there at any time.
struct Way {
  WritingRun run;
  Allowed allowed;
  bool reports = true;  // a call that fails is an error of the program
};

// Whether it is the beginning of a text; zeros are bytes that a power failure took.
bool begins(const std::string& text, const std::string& beginning) {
  bool fits = beginning.size() <= text.size();
  for (std::size_t i = 0; fits && i < beginning.size(); ++i) {
    fits = beginning[i] == text[i] || beginning[i] == '\0';
  }
  return fits;
}

class FilesCrash : public ::testing::Test {
 protected:
  FilesCrash()
      : folder_(fs::canonical(fs::temp_directory_path()) /
                ("piper_crash_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~FilesCrash() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  static std::string at(const Files& files, const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? "nothing" : found->second;
  }

  WritingRun run_of(std::vector<std::string> arguments, std::function<void()> prepare) const {
    return {PIPER_WRITES_FILES, std::move(arguments), folder_, {}, std::move(prepare)};
  }

  // In folders that are not there, or in place of an older file.
  Way file(const std::string& name, const std::string& before) const {
    Way way;
    const std::string path = folder_ / name;
    way.run = run_of({"file", name, "the new text"}, [=, this] {
      put("other", "untouched");
      if (before != "nothing") {
        put(name, before);
      }
    });
    way.allowed = [=, this](const Files& files, bool complete) {
      const std::string now = at(files, path);
      return at(files, folder_ / "other") == "untouched" &&
             (now == "the new text" || (!complete && now == before));
    };
    return way;
  }

  // Over a log that is there and one that was kept.
  Way log() const {
    Way way;
    const std::string path = folder_ / "log";
    way.run = run_of({"log", "log", "one", "two"}, [=, this] {
      put("log", "old\n");
      put("log.1", "older\n");
    });
    way.allowed = [=](const Files& files, bool complete) {
      const std::string log = at(files, path), one = at(files, path + ".1"),
                        two = at(files, path + ".2");
      const bool kept = one == "old\n" && two == "older\n";
      const bool has_old = log == "old\n" || one == "old\n";
      const bool has_older = one == "older\n" || two == "older\n";
      const bool starts = log == "nothing" || log == "old\n" || begins("one\ntwo\n", log);
      return complete ? kept && log == "one\ntwo\n" : has_old && has_older && starts;
    };
    return way;
  }

  Way cache() const {
    Way way;
    way.run = run_of({"cache"}, [] {});
    way.run.environment["PIPER_CACHE"] = folder_ / "cache";
    way.reports = false;
    const Recorded recorded = record(way.run);
    const Files whole = look(folder_);
    EXPECT_EQ(whole.size(), 4U) << "three folders and the graph";
    way.allowed = [=](const Files& files, bool complete) {
      for (const auto& [path, bytes] : files) {
        if (at(whole, path) != bytes) {
          return false;
        }
      }
      return !complete || files == whole;
    };
    return way;
  }

  std::vector<Way> ways() const {
    return {file("a", "the old text"), file("b/c/a", "nothing"), log(), cache()};
  }

  fs::path folder_;
};

TEST_F(FilesCrash, LeavesOldOrNewWhereItIsKilledAndNothingAfterTheNextRun) {
  for (const Way& way : ways()) {
    const Recorded recorded = record(way.run);
    ASSERT_EQ(recorded.ended.status, 0) << recorded.ended.err;
    ASSERT_GE(count(recorded.calls), 5);
    for (long call = 1; call <= count(recorded.calls); ++call) {
      const Ended killed = run_with_fault(way.run, "kill", call);
      const Files left = look(folder_);

      EXPECT_EQ(killed.status, 128 + SIGKILL);
      EXPECT_TRUE(way.allowed(without_staging(left), false)) << call << describe(left);

      const Ended again =
          run_program(way.run.program, way.run.arguments, folder_, way.run.environment);
      EXPECT_EQ(again.status, 0) << again.err;
      EXPECT_EQ(look(folder_), without_staging(look(folder_))) << call;
    }
  }
}

TEST_F(FilesCrash, LeavesOldOrNewAndSaysWhyWhereACallFails) {
  for (const Way& way : ways()) {
    const long calls = count(record(way.run).calls);
    for (const std::string what : {"fail", "fail-on"}) {
      for (const int reason : {ENOSPC, EIO}) {
        for (long call = 1; call <= calls; ++call) {
          const Ended failed = run_with_fault(way.run, what, call, reason);
          const Files left = look(folder_);

          EXPECT_TRUE(way.allowed(left, failed.status == 0 && way.reports))
              << what << call << describe(left);
          EXPECT_EQ(left, without_staging(left)) << what << call;
          if (way.reports && failed.status != 0) {
            EXPECT_NE(failed.err.find(reason == EIO ? ": input/output error [file.write]"
                                                    : ": no space left on device [file.write]"),
                      std::string::npos)
                << what << call << failed.err;
          }
        }
      }
    }
  }
}

TEST_F(FilesCrash, WritesAllOfItWhereTheSystemTakesAPart) {
  for (const Way& way : ways()) {
    const long calls = count(record(way.run).calls);
    for (long call = 1; call <= calls; ++call) {
      const Ended ended = run_with_fault(way.run, "short", call);

      EXPECT_EQ(ended.status, 0) << ended.err;
      EXPECT_TRUE(way.allowed(look(folder_), true)) << call << describe(look(folder_));
    }
  }
}

TEST_F(FilesCrash, WritesALineOfALogInOneCall) {
  std::vector<std::string> lines;
  for (const FileCall& call : record(log().run).calls) {
    if (call.what == "write") {
      lines.push_back(call.bytes);
    }
  }

  EXPECT_EQ(lines, (std::vector<std::string>{"one\n", "two\n"}));
}

TEST_F(FilesCrash, LeavesOldOrNewWhereThePowerFails) {
  for (const Way& way : ways()) {
    const Recorded recorded = record(way.run);

    EXPECT_EQ(power_loss_fault(recorded, way.allowed), "");
  }
}

// Each flush is needed, and the test above sees that.
TEST_F(FilesCrash, IsSeenToLoseAFileWithoutAnyOneOfItsFlushes) {
  for (const Way& way : ways()) {
    const Recorded recorded = record(way.run);
    for (std::size_t i = 0; i < recorded.calls.size(); ++i) {
      if (recorded.calls[i].what == "sync") {
        EXPECT_NE(power_loss_fault(recorded, way.allowed, i), "") << to_string(recorded.calls[i]);
      }
    }
  }
}

}  // namespace
}  // namespace piper::testing
