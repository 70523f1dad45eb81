#include "runtime/data/text.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::expect_error;
using testing::Folder;
using testing::job_of;
using testing::model_of_text;
using testing::read_row;

TEST(Text, RowsAreBytesWithAnEndOfDocumentTokenAndLabelsOneFurther) {
  const Folder folder;
  const Config config = job_of({folder.write("a", "abcdef")}, 3, 1);
  const ModelGraph model = model_of_text(3);
  const auto fields = fields_of(model);

  const auto source = load_dataset(config, model);

  ASSERT_TRUE(source.has_value());
  ASSERT_EQ((*source)->rows(Part::training), 2);
  EXPECT_EQ(read_row(**source, Part::training, 0, fields[0]),
            (std::vector<std::int64_t>{'a', 'b', 'c'}));
  EXPECT_EQ(read_row(**source, Part::training, 0, fields[1]),
            (std::vector<std::int64_t>{'b', 'c', 'd'}));
  EXPECT_EQ(read_row(**source, Part::training, 1, fields[0]),
            (std::vector<std::int64_t>{'d', 'e', 'f'}));
  EXPECT_EQ(read_row(**source, Part::training, 1, fields[1]),
            (std::vector<std::int64_t>{'e', 'f', kEndOfDocument}));
}

TEST(Text, RowsCrossDocuments) {
  const Folder folder;
  Config config = job_of({folder.write("a", "ab"), folder.write("b", "\xff!")}, 5, 1);
  config.validation.fraction = 0;
  const ModelGraph model = model_of_text(5);

  const auto source = load_dataset(config, model);

  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(read_row(**source, Part::training, 0, fields_of(model)[0]),
            (std::vector<std::int64_t>{'a', 'b', kEndOfDocument, 255, '!'}));
}

TEST(Text, HeldOutDocumentsAreWholeAndEveryTokenOfThemCountsOnce) {
  const Folder folder;
  for (int i = 0; i < 20; ++i) {
    folder.write("doc" + std::to_string(i), std::string(10 + i, static_cast<char>('a' + i)));
  }
  const Config config = job_of({folder.path()}, 7, 1);
  const ModelGraph model = model_of_text(7);
  const auto fields = fields_of(model);

  const auto layout = lay_out_text(config, model);
  const auto source = load_dataset(config, model);

  ASSERT_TRUE(layout.has_value() && source.has_value());
  EXPECT_EQ(layout->files[1].size(), 2u);
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < (*source)->rows(Part::held_out); ++row) {
    for (const std::int64_t label : read_row(**source, Part::held_out, row, fields[1])) {
      counted += label == kIgnoredLabel ? 0 : 1;
    }
  }
  EXPECT_EQ(counted, layout->tokens(Part::held_out) - 1);
}

TEST(Text, TheChoiceOfHeldOutDocumentsDependsOnNamesAlone) {
  const Folder folder, other;
  for (int i = 0; i < 10; ++i) {
    folder.write("doc" + std::to_string(i), "some text that is long enough");
    other.write("below/doc" + std::to_string(i), "other text that is long enough");
  }
  const auto held_out = [](const Folder& from, std::uint64_t seed) {
    Config config = job_of({from.path()}, 4, 1);
    config.training.seed = seed;
    const auto layout = lay_out_text(config, model_of_text(4));
    return std::filesystem::path(layout->files[1].at(0).path).filename().string();
  };

  EXPECT_EQ(held_out(folder, 1), held_out(folder, 2));
  EXPECT_EQ(held_out(folder, 1), held_out(other, 1));
}

TEST(Text, ASingleDocumentHoldsNothingOut) {
  const Folder folder;
  const Config config = job_of({folder.write("a", "abcdefghij")}, 3, 1);

  const auto source = load_dataset(config, model_of_text(3));

  ASSERT_TRUE(source.has_value());
  EXPECT_EQ((*source)->rows(Part::held_out), 0);
  EXPECT_NE((*source)->describe().find("held out: nothing"), std::string::npos);
}

TEST(Text, OneOfTwoDocumentsIsLeftToTrainOn) {
  const Folder folder;
  Config config = job_of({folder.write("a", "abcdefghij"), folder.write("b", "0123456789")}, 3, 1);
  config.validation.fraction = 1;

  const auto layout = lay_out_text(config, model_of_text(3));

  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->files[0].size(), 1u);
  EXPECT_EQ(layout->files[1].size(), 1u);
}

TEST(Text, ShorterThanASequenceIsRefused) {
  const Folder folder;
  const Config config = job_of({folder.write("a", "abc")}, 4, 1);

  expect_error(check_data(config, model_of_text(4)), "data.too_short",
               "has 4 tokens, expected at least one sequence of seq_len + 1 = 5");
}

TEST(Text, FewerRowsThanABatchAreRefused) {
  const Folder folder;
  const Config config = job_of({folder.write("a", "abcdefghi")}, 3, 4);

  expect_error(check_data(config, model_of_text(3)), "data.too_few_rows",
               "has 3 rows of seq_len = 3, expected at least global_batch_size = 4");
}

TEST(Text, AModelWithOtherInputsIsRefused) {
  const Folder folder;
  const Config config = job_of({folder.write("a", "abcdefghi")}, 3, 1);
  ModelGraph model = model_of_text(3);
  model.values.push_back(testing::input("age", DType::float32, {1}));

  expect_error(check_data(config, model), "data.input", "the model has an input 'age'");
}

TEST(Text, AVocabularyWithoutAnEndOfDocumentIsRefused) {
  const Folder folder;
  Config config = job_of({folder.write("a", "abcdefghi")}, 3, 1);
  config.model.vocab = 256;

  expect_error(check_data(config, model_of_text(3)), "data.vocabulary", "the model has 256");
}

}  // namespace
}  // namespace piper
