#include "runtime/data/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/data/check_data.h"
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
  EXPECT_GE(layout->tokens(Part::held_out), 41);  // of 410
  EXPECT_LE(layout->tokens(Part::held_out), 61);
  EXPECT_TRUE(std::all_of(layout->extents[1].begin(), layout->extents[1].end(),
                          [](const Extent& extent) { return extent.begin == 0; }));
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
    return std::filesystem::path(layout->files[layout->extents[1].at(0).file].path)
        .filename()
        .string();
  };

  EXPECT_EQ(held_out(folder, 1), held_out(folder, 2));
  EXPECT_EQ(held_out(folder, 1), held_out(other, 1));
}

TEST(Text, OfASingleDocumentTheTailIsHeldOut) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += static_cast<char>(i);
  }
  const Config config = job_of({folder.write("a.txt", text)}, 3, 1);
  const ModelGraph model = model_of_text(3);
  const auto fields = fields_of(model);

  const auto source = load_dataset(config, model);

  ASSERT_TRUE(source.has_value());
  // Three rows and the last label: tokens 91 to 99 and the end of the document.
  ASSERT_EQ((*source)->rows(Part::held_out), 3);
  EXPECT_EQ(read_row(**source, Part::held_out, 0, fields[0]),
            (std::vector<std::int64_t>{91, 92, 93}));
  EXPECT_EQ(read_row(**source, Part::held_out, 2, fields[1]),
            (std::vector<std::int64_t>{98, 99, kEndOfDocument}));
  ASSERT_EQ((*source)->rows(Part::training), 30);
  EXPECT_EQ(read_row(**source, Part::training, 29, fields[1]),
            (std::vector<std::int64_t>{88, 89, 90}));
  EXPECT_EQ((*source)->describe(),
            "text: 1 document, 91 tokens, 30 rows; held out: the tail of a.txt, 10 tokens, 3 rows");
}

TEST(Text, AShareThatASmallDocumentDoesNotGiveIsMadeUpByATailOfALargeOne) {
  const Folder folder;
  folder.write("a-large", std::string(999, 'l'));
  folder.write("b-small", std::string(19, 's'));
  folder.write("c-small", std::string(9, 's'));
  Config config = job_of({folder.path()}, 8, 1);
  const ModelGraph model = model_of_text(8);

  const auto layout = lay_out_text(config, model);
  const auto source = load_dataset(config, model);

  ASSERT_TRUE(layout.has_value() && source.has_value());
  // The share is 103 tokens: 13 rows of 8 and the last label.
  EXPECT_EQ(layout->tokens(Part::held_out), 13 * 8 + 1);
  EXPECT_EQ(layout->tokens(Part::training) + layout->tokens(Part::held_out), 1000 + 20 + 10);
  EXPECT_NE((*source)->describe().find("held out: 2 documents and the tail of a-large, 105 tokens"),
            std::string::npos)
      << (*source)->describe();
  // Of a row that documents share, the place is that of its first token.
  EXPECT_EQ((*source)->place_of(Part::held_out, 12).file, folder.path("a-large"));
  EXPECT_EQ((*source)->place_of(Part::training, 0).file, folder.path("a-large"));
}

TEST(Text, TooShortToDivideHoldsNothingOut) {
  const Folder folder;
  const Config config = job_of({folder.write("a", "abcde")}, 3, 1);

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
  EXPECT_EQ(layout->extents[0].size(), 1u);
  EXPECT_EQ(layout->extents[1].size(), 1u);
}

TEST(Text, AFileThatIsCutShortAfterItWasOpenedIsAnErrorWithItsName) {
  const Folder folder;
  const std::string path = folder.write("long.txt", std::string(3 << 20, 'x'));
  const ModelGraph model = model_of_text(16);
  const auto source = load_dataset(job_of({path}, 16, 1), model);
  ASSERT_TRUE(source.has_value());
  std::vector<std::int64_t> row(16);

  std::filesystem::resize_file(path, 0);

  expect_error((*source)->read(Part::training, 1000, fields_of(model)[0],
                               reinterpret_cast<std::byte*>(row.data())),
               "data.changed", path + ": error: the data file has changed");
}

TEST(Text, ShorterThanASequenceIsRefused) {
  const Folder folder;
  const Config config = job_of({folder.write("a", "abc")}, 4, 1);

  expect_error(check_data(config, model_of_text(4)), "data.too_short",
               "has 4 tokens, expected at least one sequence of seq_len + 1 = 5");
}

TEST(Text, FewerRowsThanABatchAreRefused) {
  const Folder folder;
  Config config = job_of({folder.write("a", "abcdefghi")}, 3, 4);
  config.validation.fraction = 0;

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
