#include "runtime/data/row_index.h"

#include <gtest/gtest.h>

#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::expect_error;
using testing::Folder;

const std::vector<RowColumn>& columns() {
  static const std::vector<RowColumn> two = [] {
    Config config;
    config.model.vocab = 100;
    return columns_of(config, testing::model_of_text(3));
  }();
  return two;
}

std::string row(const std::string& tokens, const std::string& labels) {
  return "{\"tokens\": [" + tokens + "], \"labels\": [" + labels + "]}\n";
}

DataFile file_of(const Folder& folder, const std::string& text) {
  return std::move(*DataFile::open(find_files({folder.write("rows", text)}, {})->front(), {}));
}

Expected<RowIndex> index_of(const Folder& folder, const std::string& text) {
  return index_rows(file_of(folder, text), columns(), Clock::time_point::max(), {});
}

TEST(RowIndex, KnowsWhereRowsAreAndWhatIsInThem) {
  const Folder folder;
  const std::string one = row("1, 2, 3", "2, 3, 4"), two = row("5, 6, 70", "-100, 7, -100");

  const auto index = index_of(folder, one + two);

  ASSERT_TRUE(index.has_value()) << to_string(index.error());
  EXPECT_EQ(index->offsets, (std::vector<std::uint64_t>{0, one.size()}));
  EXPECT_EQ(index->length(0), one.size());
  EXPECT_EQ(index->length(1), two.size());
  EXPECT_EQ(index->counted, (std::vector<std::uint32_t>{3, 1}));
  EXPECT_EQ(index->ranges[0].least, 1);
  EXPECT_EQ(index->ranges[0].most, 70);
  EXPECT_EQ(index->ranges[1].least, 2);  // -100 is not counted
  EXPECT_EQ(index->ranges[1].most, 7);
  EXPECT_EQ(index->unshifted, 0u);
}

TEST(RowIndex, LinesAreCountedOverEmptyOnes) {
  const Folder folder;
  const std::string good = row("1, 2, 3", "2, 3, 4");

  const auto index = index_of(folder, "\n \t\r\n" + good + good + "\n" + good + "\n\n");

  ASSERT_TRUE(index.has_value());
  ASSERT_EQ(index->rows(), 3u);
  EXPECT_EQ(index->line(0), 3u);
  EXPECT_EQ(index->line(1), 4u);
  EXPECT_EQ(index->line(2), 6u);
}

TEST(RowIndex, RowsWithLabelsThatAreTheTokensAreCounted) {
  const Folder folder;

  const auto index =
      index_of(folder, row("1, 2, 3", "2, 3, 4") + row("1, 2, 3", "1, 2, 3") +
                           row("1, 2, 3", "-100, 2, 3") + row("1, 2, 3", "-100, 2, -100"));

  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->unshifted, 2u);  // one counted label may be its token
  EXPECT_EQ(index->first_unshifted, 1u);
}

// Chunks of some megabytes are read: lines lie across their ends.
TEST(RowIndex, OfAFileOfManyChunksIsThatOfItsLines) {
  const Folder folder;
  std::string text;
  std::vector<std::uint64_t> offsets;
  for (int i = 0; text.size() < 9'000'000; ++i) {
    offsets.push_back(text.size());
    text += "{\"id\": \"" + std::string(static_cast<std::size_t>(i * 7919 % 50021), 'x') + "\", " +
            row("1, 2, " + std::to_string(i % 100), "2, 3, 4").substr(1);
  }
  std::uint64_t told = 0;

  const auto index = index_rows(file_of(folder, text), columns(), Clock::time_point::max(),
                                [&](std::uint64_t bytes) { told += bytes; });

  ASSERT_TRUE(index.has_value()) << to_string(index.error());
  EXPECT_EQ(index->offsets, offsets);
  EXPECT_EQ(index->bytes, text.size());
  EXPECT_EQ(told, text.size());
}

TEST(RowIndex, EndsAtItsDeadlineAndSaysHowFarItCame) {
  const Folder folder;
  std::string text;
  while (text.size() < 9'000'000) {
    text += row("1, 2, 3", "2, 3, 4");
  }

  const auto index = index_rows(file_of(folder, text), columns(), Clock::now(), {});

  ASSERT_TRUE(index.has_value());
  EXPECT_GT(index->rows(), 0u);
  EXPECT_LT(index->bytes, 5'000'000u);
  EXPECT_EQ(index->bytes % row("1, 2, 3", "2, 3, 4").size(), 0u);
}

TEST(RowIndex, AWrongRowIsNamedWithLineAndColumn) {
  const Folder folder;
  const std::string good = row("1, 2, 3", "2, 3, 4");
  const auto fails = [&](const std::string& line, const std::string& code,
                         const std::string& text) {
    expect_error(index_of(folder, good + "\n" + line), code, "rows:3:" + text);
  };

  fails("{\"é\": 1, \"tokens\": [1, 2, 100]", "data.token_range", "27: error: 'tokens'");
  fails("{\"tokens\": [1, 2, 3}", "data.json", "20: error: expected ',' or ']', got '}'");
  fails("{\"tokens\": [1, 2, 3]} x", "data.json", "23: error: expected the end of the line after");
  fails("{\"tokens\": [1, 2, 3], \"tokens\": [1, 2, 3]}", "data.json",
        "23: error: expected one field 'tokens', got a second");
  fails("\x1b[2J\x07", "data.json", "1: error: expected a JSON object, got '\\x1b[2J\\x07'");
}

TEST(RowIndex, FindsAFieldWhoseNameIsEscaped) {
  const Folder folder;

  const auto index = index_of(folder, "{\"\\u0074okens\": [1, 2, 3], \"labels\": [1, 2, 4]}");

  ASSERT_TRUE(index.has_value()) << to_string(index.error());
  EXPECT_EQ(index->ranges[0].most, 3);
}

}  // namespace
}  // namespace piper
