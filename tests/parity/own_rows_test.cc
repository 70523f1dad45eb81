// `piper verify` on the job's own data.
#include <gtest/gtest.h>

#include "tests/parity/harness.h"
#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::Case;

// Rows that all count the same number of labels.
Expected<Job> job_with_even_rows(const testing::Folder& folder) {
  std::string text;
  for (int row = 0; row < 12; ++row) {
    text += "{\"tokens\": [";
    std::string labels;
    for (int t = 0; t < 6; ++t) {
      text += (t > 0 ? "," : "") + std::to_string((row * 7 + t * 3) % 37);
      labels += (t > 0 ? "," : "") + std::to_string((row * 5 + t) % 37);
    }
    text += "], \"labels\": [" + labels + "]}\n";
  }
  Case c;
  c.pp = 2, c.dp = 2, c.microbatches = 3, c.optimizer = "adamw";
  auto job = make_job(c);
  if (job) {
    job->config.training.dataset_path = {folder.write("rows.jsonl", text)};
  }
  return job;
}

TEST(OwnRows, AreVerified) {
  const testing::Folder folder;
  const auto job = job_with_even_rows(folder);
  ASSERT_TRUE(job.has_value()) << to_string(job.error());

  const auto report = verify_parity(*job, {3, 1});

  ASSERT_TRUE(report.has_value()) << to_string(report.error());
  EXPECT_TRUE(report->passed) << report->text;
  EXPECT_EQ(report->text.find("piper verify: qwen3, pp 2, dp 2, 3 micro-batches, float64, adamw; "
                              "3 steps of 8 rows"),
            0u)
      << report->text;
}

TEST(OwnRows, ShowABrokenScale) {
  const testing::Folder folder;
  const auto job = job_with_even_rows(folder);
  ASSERT_TRUE(job.has_value()) << to_string(job.error());

  const auto report = verify_parity(*job, {1, 0.5});

  ASSERT_TRUE(report.has_value()) << to_string(report.error());
  EXPECT_FALSE(report->passed);
  EXPECT_NE(report->text.find("parity with one device: not met, largest difference"),
            std::string::npos)
      << report->text;
}

TEST(OwnRows, ThatAreTooFewAreRefused) {
  const testing::Folder folder;
  auto job = job_with_even_rows(folder);
  ASSERT_TRUE(job.has_value()) << to_string(job.error());
  job->config.validation.fraction = 0.5;

  const auto report = verify_parity(*job, {1, 1});

  testing::expect_error(report, "data.too_few_rows", "has 6 rows");
}

}  // namespace
}  // namespace piper
