#include "runtime/data/check_data.h"

#include <gtest/gtest.h>

#include "runtime/data/inspect.h"
#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::expect_error;
using testing::Folder;
using testing::job_of;
using testing::model_of_text;

Config jsonl(const std::string& path) {
  Config config = job_of({path}, 2, 1);
  config.training.dataset = Dataset::jsonl;
  config.model.vocab = 10;
  return config;
}

const std::string kShifted = "{\"tokens\": [1, 2], \"labels\": [2, 3]}\n";
const std::string kSame = "{\"tokens\": [1, 2], \"labels\": [1, 2]}\n";

TEST(CheckData, SaysHowMuchItLookedAt) {
  const Folder folder;

  const auto rows = check_data(jsonl(folder.write("rows", kShifted + kShifted)), model_of_text(2));
  folder.write("text/a", "some text");
  const auto text = check_data(job_of({folder.path("text")}, 2, 1), model_of_text(2));

  ASSERT_TRUE(rows.has_value() && text.has_value());
  EXPECT_EQ(rows->looked_at, "data: looked at all of 2 rows");
  EXPECT_TRUE(rows->remarks.empty());
  EXPECT_EQ(text->looked_at, "data: looked at all of 1 file");
  EXPECT_TRUE(text->remarks.empty());
}

TEST(CheckData, RemarksLabelsThatAreTheTokens) {
  const Folder folder;

  const auto most =
      check_data(jsonl(folder.write("rows", kShifted + kSame + kSame)), model_of_text(2));
  const auto few = check_data(jsonl(folder.write("rows", kShifted + kSame)), model_of_text(2));

  ASSERT_TRUE(most.has_value() && few.has_value());
  ASSERT_EQ(most->remarks.size(), 1u);
  EXPECT_EQ(to_string(most->remarks[0]),
            folder.path("rows") +
                ":2: warning: in 2 rows of 3 the labels are the tokens themselves: expected at "
                "each place the token after it, since labels are used as they stand "
                "[data.unshifted_labels]");
  EXPECT_TRUE(few->remarks.empty());
}

TEST(CheckData, RemarksFilesThatAreNoText) {
  const Folder folder;
  folder.write("a.txt", "some text that is text");
  folder.write("b.png", "\x89PNG\r\n\x1a\n and more");
  folder.write("c.gz", "\x1f\x8b and more");

  const auto two = check_data(job_of({folder.path()}, 2, 1), model_of_text(2));
  const auto one = check_data(job_of({folder.path("b.png")}, 2, 1), model_of_text(2));

  ASSERT_TRUE(two.has_value() && one.has_value());
  ASSERT_EQ(two->remarks.size(), 1u);
  EXPECT_EQ(to_string(two->remarks[0]),
            folder.path("b.png") +
                ": warning: 2 files of 3 are not text, the first is a PNG image: dataset = "
                "\"text\" trains on the bytes as they are [data.not_text]");
  EXPECT_NE(one->remarks[0].message.find("1 file of 1 is not text but a PNG image"),
            std::string::npos);
}

TEST(CheckData, TellsTextFromOtherBytes) {
  EXPECT_EQ(not_text("plain text\n"), "");
  EXPECT_EQ(not_text("Grüße, 你好, 😀"), "");
  EXPECT_EQ(not_text("mostly ASCII, and one byte of Latin-1: \xe9 in it"), "");
  EXPECT_EQ(not_text(""), "");
  EXPECT_EQ(not_text("%PDF-1.7"), "a PDF document");
  EXPECT_EQ(not_text("PK\x03\x04"), "a zip archive (docx, xlsx, epub and npz are such)");
  EXPECT_EQ(not_text("\x7f"
                     "ELF\x02"),
            "an ELF program");
  EXPECT_EQ(not_text(std::string("a\0b", 3)), "binary data (bytes of 0 are in it)");
  EXPECT_EQ(not_text("\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0"),
            "bytes of another encoding than UTF-8");
  // A character that the end of what is looked at divides.
  EXPECT_EQ(not_text(std::string(kInspected - 1, 'a') + "é"), "");
}

TEST(CheckData, FewerRowsThanABatchAreRefused) {
  const Folder folder;
  Config config = jsonl(folder.write("rows", kShifted + kShifted + kShifted));
  config.training.global_batch_size = 3;

  expect_error(check_data(config, model_of_text(2)), "data.too_few_rows", "has 2 rows");
}

// `check` ends its look in time and says how far it came; a run's look finds the wrong row at the
// end.
TEST(CheckData, OfMoreThanFitsIntoItsTimeSaysHowMuchWasLookedAt) {
  const Folder folder;
  std::string text;
  while (text.size() < 9'000'000) {
    text += kShifted;
  }
  const Config config = jsonl(folder.write("rows", text + "[]"));

  const auto part = check_data(config, model_of_text(2), {.time = std::chrono::seconds(0)});
  const auto whole = check_data(config, model_of_text(2), {.whole = true});

  ASSERT_TRUE(part.has_value()) << to_string(part.error());
  EXPECT_EQ(part->looked_at,
            "data: looked at 113,360 of about 243,244 rows (a run looks at all before it starts)");
  expect_error(whole, "data.json", "expected a JSON object, got array");
}

}  // namespace
}  // namespace piper
