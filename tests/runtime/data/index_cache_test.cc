#include "runtime/data/index_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "runtime/data/jsonl.h"
#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::Folder;

// A file that is large and old enough for the cache, and a cache of its own.
class RowCache : public ::testing::Test {
 protected:
  RowCache() {
    setenv("PIPER_CACHE", cache_.path().c_str(), 1);
    std::string text;
    for (int i = 0; text.size() < 5'000'000; ++i) {
      text += (i % 1000 == 999 ? "\n" : "") + row(1 + i % 1000);
    }
    file_ = folder_.write("rows.jsonl", text + row(1899));
    age(file_);
    config_ = testing::job_of({file_}, 4, 1);
    config_.training.dataset = Dataset::jsonl;
    config_.model.vocab = 2000;
  }
  ~RowCache() override { unsetenv("PIPER_CACHE"); }

  static std::string row(int i) {
    const std::string id = std::to_string(i);
    return "{\"tokens\": [" + id + ", 2, 3, 4], \"labels\": [2, " + id + ", 4, 5], \"text\": \"" +
           std::string(100, 'x') + "\"}\n";
  }
  static void age(const std::string& path) {
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
  }

  SourceFile source() const { return find_files({file_}, {})->front(); }
  IndexCache cache() const { return IndexCache(source(), columns_of(config_, model_)); }
  Expected<JsonlRows> look() const { return look_at_rows(config_, model_); }

  Folder cache_, folder_;
  std::string file_;
  Config config_;
  ModelGraph model_ = testing::model_of_text(4);
};

TEST_F(RowCache, GivesBackWhatWasStored) {
  const auto rows = look();
  ASSERT_TRUE(rows.has_value()) << to_string(rows.error());
  const RowIndex& made = rows->indexes[0];

  const auto found = cache().load();

  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->offsets, made.offsets);
  EXPECT_EQ(found->hashes, made.hashes);
  EXPECT_EQ(found->counted, made.counted);
  EXPECT_EQ(found->bytes, made.bytes);
  ASSERT_EQ(found->gaps.size(), made.gaps.size());
  EXPECT_GT(found->gaps.size(), 10u);
  EXPECT_EQ(found->line(5000), made.line(5000));
  EXPECT_EQ(found->ranges[0].most, 1899);
}

// The file is not read again: what is wrong with it now, its size and time do not show.
TEST_F(RowCache, IsUsedInsteadOfTheFile) {
  ASSERT_TRUE(look().has_value());
  const auto time = fs::last_write_time(file_);
  std::fstream(file_) << "no JSON";
  fs::last_write_time(file_, time);

  EXPECT_TRUE(look().has_value());

  fs::remove_all(cache_.path());
  expect_error(look(), "data.json", "rows.jsonl:1:1");
}

TEST_F(RowCache, OfAFileThatChangedIsNotUsed) {
  ASSERT_TRUE(look().has_value());

  fs::last_write_time(file_, fs::last_write_time(file_) - std::chrono::nanoseconds(1000));
  EXPECT_FALSE(cache().load().has_value());

  ASSERT_TRUE(look().has_value());
  EXPECT_TRUE(cache().load().has_value());
  fs::copy_file(file_, file_ + "2");
  fs::last_write_time(file_ + "2", fs::last_write_time(file_));
  fs::rename(file_ + "2", file_);  // another inode
  EXPECT_FALSE(cache().load().has_value());
}

TEST_F(RowCache, OfAModelWithOtherFieldsIsNotUsed) {
  ASSERT_TRUE(look().has_value());

  EXPECT_FALSE(
      IndexCache(source(), columns_of(config_, testing::model_of_text(5))).load().has_value());
}

// Truncated anywhere, or with a byte changed: it is made again.
TEST_F(RowCache, ThatIsDamagedIsNotUsed) {
  ASSERT_TRUE(look().has_value());
  const std::string path = cache().path();
  std::string good(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary)
      .read(good.data(), static_cast<std::streamsize>(good.size()));
  const auto loads = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return cache().load().has_value();
  };
  ASSERT_TRUE(loads(good));

  for (std::size_t size = 0; size < good.size(); size = size * 2 + 1) {
    EXPECT_FALSE(loads(good.substr(0, size))) << size;
  }
  EXPECT_FALSE(loads(good + "x"));
  for (std::size_t at = 0; at < good.size(); at += 1 + at / 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_FALSE(loads(bad)) << at;
  }
  ASSERT_TRUE(look().has_value());
  EXPECT_TRUE(cache().load().has_value());
}

// An index that was made with a larger vocabulary: the row is still named.
TEST_F(RowCache, AnIdOutOfRangeIsNamedWithItsLine) {
  ASSERT_TRUE(look().has_value());
  config_.model.vocab = 900;

  expect_error(look(), "data.token_range",
               "rows.jsonl:900:13: error: 'tokens': expected ids from 0 to 899, got 900");
  // However far in the file, and however little time there is.
  config_.model.vocab = 1899;
  expect_error(look_at_rows(config_, model_, Clock::now()), "data.token_range", "got 1899");
}

TEST_F(RowCache, IsLeftOutForFilesThatAreSmallOrYoung) {
  // Later than now: however slowly the test runs, the file is young.
  fs::last_write_time(file_, fs::file_time_type::clock::now() + std::chrono::hours(1));
  ASSERT_TRUE(look().has_value());
  EXPECT_FALSE(fs::exists(cache_.path("rows")));

  config_.training.dataset_path = {folder_.write("small.jsonl", row(1) + row(2))};
  age(folder_.path("small.jsonl"));
  ASSERT_TRUE(look().has_value());
  EXPECT_FALSE(fs::exists(cache_.path("rows")));
}

TEST_F(RowCache, ThatCannotBeWrittenDoesNoHarm) {
  std::ofstream(cache_.path("rows")) << "a file where the folder would be";
  EXPECT_TRUE(look().has_value());

  setenv("PIPER_CACHE", "/proc/no_such_place", 1);
  EXPECT_TRUE(look().has_value());

  unsetenv("PIPER_CACHE");
  setenv("HOME", "", 1);
  EXPECT_EQ(cache().path(), "");
  EXPECT_TRUE(look().has_value());
}

TEST_F(RowCache, ServesSeveralAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> rows(4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto found = look();
      rows[i] = found ? found->rows() : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  EXPECT_EQ(rows, std::vector<std::uint64_t>(4, look()->rows()));
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_.path("rows")), fs::directory_iterator()),
            1);
}

}  // namespace
}  // namespace piper
