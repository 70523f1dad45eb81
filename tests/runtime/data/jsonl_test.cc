#include "runtime/data/jsonl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "runtime/data/check_data.h"
#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::expect_error;
using testing::Folder;
using testing::job_of;
using testing::model_of_text;
using testing::read_row;

Config jsonl(const std::string& file, std::int64_t seq_len, std::int64_t rows) {
  Config config = job_of({file}, seq_len, rows);
  config.training.dataset = Dataset::jsonl;
  config.validation.fraction = 0;
  config.model.vocab = 10;
  return config;
}

// What is wrong with a file whose second line is `line`.
Expected<DataReport> problem_with(const std::string& line) {
  const Folder folder;
  const std::string good = R"({"tokens": [1, 2], "labels": [2, 3]})";
  return check_data(jsonl(folder.write("rows.jsonl", good + "\n" + line + "\n"), 2, 1),
                    model_of_text(2));
}

TEST(Jsonl, ReadsTokensAndLabelsAsTheyStand) {
  const Folder folder;
  const Config config = jsonl(folder.write("rows.jsonl",
                                           "{\"tokens\": [1, 2], \"labels\": [-100, 3]}\n"
                                           "{\"id\": 7, \"labels\": [5, 6], \"tokens\": [4, 9]}"),
                              2, 1);
  const ModelGraph model = model_of_text(2);
  const auto fields = fields_of(model);

  const auto source = load_dataset(config, model);

  ASSERT_TRUE(source.has_value()) << to_string(source.error());
  ASSERT_EQ((*source)->rows(Part::training), 2);
  EXPECT_EQ(read_row(**source, Part::training, 0, fields[0]), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(read_row(**source, Part::training, 0, fields[1]), (std::vector<std::int64_t>{-100, 3}));
  EXPECT_EQ(read_row(**source, Part::training, 1, fields[0]), (std::vector<std::int64_t>{4, 9}));
}

TEST(Jsonl, ToleratesAByteOrderMarkAndWindowsLineEnds) {
  const Folder folder;
  const Config config = jsonl(folder.write("rows.jsonl",
                                           "\xef\xbb\xbf{\"tokens\": [1], \"labels\": [2]}\r\n\r\n"
                                           "{\"tokens\": [3], \"labels\": [4]}\r\n"),
                              1, 1);

  const auto source = load_dataset(config, model_of_text(1));

  ASSERT_TRUE(source.has_value()) << to_string(source.error());
  EXPECT_EQ((*source)->rows(Part::training), 2);
}

TEST(Jsonl, DeliversAnyInputByNameWithItsShapeAndType) {
  const Folder folder;
  ModelGraph model;
  model.values = {testing::input("image", DType::float32, {2, 2}),
                  testing::input("mask", DType::boolean, {2}),
                  testing::input("labels", DType::int64, {})};
  model.labels = static_cast<ValueId>(2);
  const Config config =
      jsonl(folder.write("rows.jsonl",
                         R"({"image": [[0.5, 1], [2, -3e1]], "mask": [true, false], "labels": 4})"),
            128, 1);
  const auto fields = fields_of(model);

  const auto source = load_dataset(config, model);

  ASSERT_TRUE(source.has_value()) << to_string(source.error());
  float image[4];
  bool mask[2];
  ASSERT_TRUE((*source)
                  ->read(Part::training, 0, fields[0], reinterpret_cast<std::byte*>(image))
                  .has_value());
  ASSERT_TRUE((*source)
                  ->read(Part::training, 0, fields[1], reinterpret_cast<std::byte*>(mask))
                  .has_value());
  EXPECT_EQ(std::vector<float>(image, image + 4), (std::vector<float>{0.5f, 1, 2, -30}));
  EXPECT_TRUE(mask[0]);
  EXPECT_FALSE(mask[1]);
  EXPECT_EQ(read_row(**source, Part::training, 0, fields[2]), std::vector<std::int64_t>{4});
}

TEST(Jsonl, RoundsNumbersToBfloat16) {
  const Folder folder;
  ModelGraph model;
  model.values = {testing::input("x", DType::bfloat16, {3})};
  const Config config = jsonl(folder.write("rows.jsonl", R"({"x": [1, 1.00390625, -2.5]})"), 1, 1);

  const auto source = load_dataset(config, model);

  ASSERT_TRUE(source.has_value()) << to_string(source.error());
  std::uint16_t bits[3];
  ASSERT_TRUE((*source)
                  ->read(Part::training, 0, fields_of(model)[0], reinterpret_cast<std::byte*>(bits))
                  .has_value());
  EXPECT_EQ(bits[0], 0x3f80);
  EXPECT_EQ(bits[1], 0x3f80);  // halfway: to even
  EXPECT_EQ(bits[2], 0xc020);
}

// Ten rows, of which row i has the token i; `order` says where each is.
std::string ten_rows(const std::vector<int>& order) {
  std::string text;
  for (const int i : order) {
    text += "{\"tokens\": [" + std::to_string(i) + "], \"labels\": [0]}\n";
  }
  return text;
}

std::vector<std::int64_t> tokens_of(const RowSource& source, Part part) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t row = 0; row < source.rows(part); ++row) {
    tokens.push_back(read_row(source, part, row, fields_of(model_of_text(1))[0]).front());
  }
  return tokens;
}

TEST(Jsonl, AShareOfTheRowsIsHeldOutAndTheOthersAreTrainedOn) {
  const Folder folder;
  Config config = jsonl(folder.write("rows.jsonl", ten_rows({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})), 1, 1);
  config.validation.fraction = 0.2;

  const auto source = load_dataset(config, model_of_text(1));

  ASSERT_TRUE(source.has_value());
  ASSERT_EQ((*source)->rows(Part::training), 8);
  ASSERT_EQ((*source)->rows(Part::held_out), 2);
  std::vector<std::int64_t> all = tokens_of(**source, Part::training);
  const std::vector<std::int64_t> held_out = tokens_of(**source, Part::held_out);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_TRUE(std::is_sorted(held_out.begin(), held_out.end()));
  all.insert(all.end(), held_out.begin(), held_out.end());
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> expected(10);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  EXPECT_EQ((*source)->describe(), "jsonl: 8 rows; held out: 2 rows");
}

TEST(Jsonl, NeitherTheSeedNorTheOrderOfLinesNorTheirFilesMoveARowToTheOtherPart) {
  const Folder folder, other;
  Config config = jsonl(folder.write("rows.jsonl", ten_rows({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})), 1, 1);
  config.validation.fraction = 0.3;
  const auto one = load_dataset(config, model_of_text(1));
  other.write("b.jsonl", ten_rows({9, 3, 1}));
  other.write("a.jsonl", ten_rows({8, 5, 7, 0, 2, 4, 6}));
  config.training.dataset_path = {other.path()};
  config.training.seed = 17;
  const auto two = load_dataset(config, model_of_text(1));

  ASSERT_TRUE(one.has_value() && two.has_value());
  std::vector<std::int64_t> held_out = tokens_of(**two, Part::held_out);
  std::sort(held_out.begin(), held_out.end());
  EXPECT_EQ(tokens_of(**one, Part::held_out), held_out);
}

TEST(Jsonl, SaysWhereARowIsAndHowManyOfItsLabelsCount) {
  const Folder folder;
  folder.write("a.jsonl", "\n{\"tokens\": [1, 2], \"labels\": [2, -100]}\n");
  folder.write("b.jsonl", "{\"tokens\": [1, 2], \"labels\": [-100, -100]}\n");

  const auto source = load_dataset(jsonl(folder.path(), 2, 1), model_of_text(2));

  ASSERT_TRUE(source.has_value()) << to_string(source.error());
  EXPECT_EQ(to_string((*source)->place_of(Part::training, 0)), folder.path("a.jsonl") + ":2");
  EXPECT_EQ(to_string((*source)->place_of(Part::training, 1)), folder.path("b.jsonl") + ":1");
  EXPECT_EQ((*source)->counted_labels(Part::training, 0), 1);
  EXPECT_EQ((*source)->counted_labels(Part::training, 1), 0);
  EXPECT_EQ((*source)->describe(), "jsonl: 2 rows, 4 tokens; held out: nothing");
}

// Rows are read when they are needed.
TEST(Jsonl, AFileThatChangesAfterItWasOpenedIsAnErrorWithItsName) {
  const Folder folder;
  const std::string path = folder.write("rows.jsonl", ten_rows({0, 1, 2}));
  const auto source = load_dataset(jsonl(path, 1, 1), model_of_text(1));
  ASSERT_TRUE(source.has_value());
  const Field field = fields_of(model_of_text(1))[0];
  std::int64_t token = 0;

  std::filesystem::remove(path);
  ASSERT_TRUE((*source)->read(Part::training, 0, field, reinterpret_cast<std::byte*>(&token)));

  const std::string again = folder.write("rows.jsonl", ten_rows({0, 1, 2}));
  const auto changing = load_dataset(jsonl(again, 1, 1), model_of_text(1));
  std::filesystem::resize_file(again, 3);
  expect_error((*changing)->read(Part::training, 2, field, reinterpret_cast<std::byte*>(&token)),
               "data.changed", again);
}

TEST(Jsonl, AnotherLengthThanTheSequenceIsRefusedWithFileAndLine) {
  expect_error(problem_with(R"({"tokens": [1, 2, 3], "labels": [2, 3]})"), "data.row_length",
               "rows.jsonl:2:12: error: 'tokens': expected 2 entries in a row, got 3");
}

TEST(Jsonl, ATokenOutsideTheVocabularyIsRefusedWithItsValue) {
  expect_error(problem_with(R"({"tokens": [1, 10], "labels": [2, 3]})"), "data.token_range",
               "rows.jsonl:2:16: error: 'tokens': expected ids from 0 to 9, got 10");
  expect_error(problem_with(R"({"tokens": [-1, 1], "labels": [2, 3]})"), "data.token_range",
               "got -1");
  expect_error(problem_with(R"({"tokens": [-100, 1], "labels": [2, 3]})"), "data.token_range",
               "got -100");
  expect_error(problem_with(R"({"tokens": [1, 1], "labels": [2, -1]})"), "data.token_range",
               "'labels': expected ids from 0 to 9 or -100, got -1");
  expect_error(problem_with(R"({"tokens": [18446744073709551615, 1], "labels": [2, 1]})"),
               "data.token_range", "got 18446744073709551615");
}

TEST(Jsonl, WhatIsNotJsonIsRefusedWithFileAndLine) {
  expect_error(problem_with(R"({"tokens": [1, 2], "labels": [2, 3])"), "data.json",
               "rows.jsonl:2:36: error: expected ',' or '}', got the end of the line");
  expect_error(problem_with("[1, 2]"), "data.json", "expected a JSON object, got array");
}

TEST(Jsonl, WhatIsNotANumberIsRefused) {
  expect_error(problem_with(R"({"tokens": [1, "2"], "labels": [2, 3]})"), "data.row_type",
               "'tokens': expected an integer, got string");
  expect_error(problem_with(R"({"tokens": [1, 2.5], "labels": [2, 3]})"), "data.row_type",
               "expected an integer, got 2.5");
  expect_error(problem_with(R"({"tokens": 1, "labels": [2, 3]})"), "data.row_type",
               "expected an array, got number");
}

TEST(Jsonl, AFieldThatIsNotUsedMayHoldHalfOfASurrogatePair) {
  const auto report = problem_with(R"({"tokens": [1, 2], "labels": [2, 3], "text": "\ud800"})");

  EXPECT_TRUE(report.has_value()) << to_string(report.error());
}

TEST(Jsonl, AMissingFieldIsRefusedWithTheNearestName) {
  expect_error(problem_with(R"({"tokens": [1, 2], "label": [2, 3]})"), "data.missing_field",
               "the row has no 'labels' (did you mean 'label'?)");
}

TEST(Jsonl, AFileWithoutRowsIsRefused) {
  const Folder folder;
  expect_error(check_data(jsonl(folder.write("rows.jsonl", "\n"), 2, 1), model_of_text(2)),
               "data.too_short", "no rows");
}

}  // namespace
}  // namespace piper
