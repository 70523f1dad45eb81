#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/metrics/display.h"
#include "runtime/metrics/metrics_file.h"
#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

StepRecord record() {
  StepRecord record;
  record.step = 10;
  record.loss = 3.22081;
  record.grad_norm = 1.234;
  record.lr = 1e-3;
  record.tokens = 4096;
  record.seconds = 1.2;
  record.bubble = 0.174;
  record.peak_bytes = {12 << 20, 3 << 20};
  record.planned_peak_bytes = {13 << 20, 4 << 20};
  return record;
}

// What a display writes to a file that stands for a terminal.
class Captured {
 public:
  Captured() : file_(open_memstream(&text_, &size_)) {}
  ~Captured() {
    std::fclose(file_);
    std::free(text_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

TEST(Metrics, AStepIsOneReadableLine) {
  EXPECT_EQ(step_line(record()),
            "step 10  loss 3.2208  norm 1.23  lr 1.0e-03  1.20 s  3,413 tok/s  bubble 17%  "
            "peak 12.0 MiB (planned 13.0)");
}

TEST(Metrics, ARankThatHeldMoreThanPlannedIsNamed) {
  StepRecord more = record();
  more.peak_bytes = {12 << 20, 1040, 1010};
  more.planned_peak_bytes = {13 << 20, 1000, 1000};

  EXPECT_NE(step_line(more).find("(planned 13.0)  rank 1 held 4% more than planned"),
            std::string::npos)
      << step_line(more);
}

TEST(Metrics, ASkippedUpdateIsSaid) {
  StepRecord skipped = record();
  skipped.updated = false;

  EXPECT_NE(step_line(skipped).find("update skipped"), std::string::npos);
}

TEST(Metrics, AStepWithoutCountedLabelsHasNoLoss) {
  StepRecord empty = record();
  empty.loss.reset();
  empty.updated = false;

  EXPECT_TRUE(step_line(empty).starts_with("step 10  loss -  norm 1.23  ")) << step_line(empty);
  EXPECT_TRUE(step_line(empty).ends_with("  no label counts: no update")) << step_line(empty);
  EXPECT_EQ(progress_line(empty, 60, 1.5), "10/60  loss -  3,413 tok/s  1:15 left");
  EXPECT_TRUE(nlohmann::json::parse(to_json(empty)).at("loss").is_null());
}

TEST(Metrics, TheHeldOutLossIsAFieldOfTheStepsThatHaveIt) {
  StepRecord evaluated = record();
  evaluated.held_out_loss = 3.5;

  EXPECT_EQ(nlohmann::json::parse(to_json(evaluated)).at("held_out_loss"), 3.5);
  EXPECT_FALSE(nlohmann::json::parse(to_json(record())).contains("held_out_loss"));
}

TEST(Metrics, ProgressSaysWhatIsLeft) {
  EXPECT_EQ(progress_line(record(), 60, 1.5), "10/60  loss 3.2208  3,413 tok/s  1:15 left");
  EXPECT_EQ(progress_line(record(), 10010, 0.5),
            "10/10010  loss 3.2208  3,413 tok/s  1:23:20 left");
}

TEST(Metrics, DigitsAreGroupedInThrees) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-123456), "-123,456");
}

TEST(Metrics, AStepIsOneJsonObjectWithExactlyTheseKeys) {
  const auto json = nlohmann::ordered_json::parse(to_json(record()));

  std::vector<std::string> keys;
  for (const auto& item : json.items()) {
    keys.push_back(item.key());
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"step", "loss", "grad_norm", "lr", "tokens_per_second",
                                            "step_seconds", "bubble", "peak_bytes",
                                            "planned_peak_bytes"}));
  EXPECT_EQ(json["peak_bytes"], (std::vector<std::int64_t>{12 << 20, 3 << 20}));
  EXPECT_DOUBLE_EQ(json["tokens_per_second"].get<double>(), 4096 / 1.2);
}

TEST(Metrics, NotANumberIsNull) {
  StepRecord nan = record();
  nan.loss = std::numeric_limits<double>::quiet_NaN();
  nan.grad_norm = std::numeric_limits<double>::infinity();

  const auto json = nlohmann::json::parse(to_json(nan));

  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(json["grad_norm"].is_null());
}

TEST(Metrics, TheFileHasALineAStep) {
  const testing::Folder folder;
  auto file = MetricsFile::open(folder.path("metrics.jsonl"), {});
  ASSERT_TRUE(file.has_value());

  ASSERT_TRUE(file->write(record()).has_value());
  ASSERT_TRUE(file->write(record()).has_value());

  std::ifstream stream(folder.path("metrics.jsonl"));
  std::string line;
  int lines = 0;
  while (std::getline(stream, line)) {
    EXPECT_TRUE(nlohmann::json::accept(line));
    ++lines;
  }
  EXPECT_EQ(lines, 2);
}

TEST(Metrics, AFileThatCannotBeWrittenIsAnErrorAtItsKey) {
  const testing::Folder folder;
  const std::string file = folder.write("file", "");

  testing::expect_error(MetricsFile::open(file + "/metrics.jsonl", {"job.toml", 3, 1}),
                        "metrics.unwritable", "job.toml:3:1: error: ");
}

TEST(Metrics, AFileThatWasThereIsKept) {
  const testing::Folder folder;
  for (int run = 1; run <= 2; ++run) {
    auto file = MetricsFile::open(folder.path("metrics.jsonl"), {});
    ASSERT_TRUE(file.has_value());
    StepRecord of_run = record();
    of_run.step = run;
    ASSERT_TRUE(file->write(of_run).has_value());
    ASSERT_TRUE(file->flush().has_value());
  }

  std::ifstream older(folder.path("metrics.jsonl.1")), newer(folder.path("metrics.jsonl"));
  EXPECT_EQ(nlohmann::json::parse(older)["step"], 1);
  EXPECT_EQ(nlohmann::json::parse(newer)["step"], 2);
}

TEST(Metrics, AFullDiskIsAnError) {
  auto file = MetricsFile::open("/dev/full", {});
  ASSERT_TRUE(file.has_value());

  testing::expect_error(file->write(record()), "metrics.unwritable", "no space left");
}

TEST(Metrics, ALineReplacesTheProgressBelowTheOnesBefore) {
  Captured terminal;
  Display display(terminal.file(), terminal.file());

  display.line("one");
  display.progress("1/2");
  display.line("two");

  EXPECT_EQ(terminal.text(), "one\n\r\x1b[K1/2\r\x1b[Ktwo\n");
}

TEST(Metrics, WithoutATerminalThereIsNoProgress) {
  Captured lines;
  Display display(lines.file(), nullptr);

  display.progress("1/2");
  display.line("one");

  EXPECT_EQ(lines.text(), "one\n");
}

}  // namespace
}  // namespace piper
