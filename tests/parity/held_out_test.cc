// Evaluation ends, and counts every held-out row once.
#include <gtest/gtest.h>

#include "runtime/data/loader.h"
#include "runtime/train/reference.h"
#include "runtime/train/train.h"
#include "tests/parity/harness.h"
#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::Case;

TEST(HeldOut, IsOneDevicesLossOverAllRowsHoweverUneven) {
  const testing::Folder folder;
  std::string text;
  for (int row = 0; row < 25; ++row) {
    text += "{\"tokens\": [";
    std::string labels;
    for (int t = 0; t < 6; ++t) {
      text += (t > 0 ? "," : "") + std::to_string((row * 7 + t * 3) % 37);
      labels += (t > 0 ? "," : "") + std::to_string(t < row % 5 ? -100 : (row * 5 + t) % 37);
    }
    text += "], \"labels\": [" + labels + "]}\n";
  }
  const std::string file = folder.write("rows.jsonl", text);

  for (const std::uint32_t pp : {1u, 2u}) {
    Case c;
    c.pp = pp, c.dp = 2, c.microbatches = 2, c.rows = 4;
    auto job = make_job(c);
    ASSERT_TRUE(job.has_value()) << to_string(job.error());
    job->config.training.dataset = Dataset::jsonl;
    job->config.training.dataset_path = {file};
    job->config.validation.fraction = 0.2;  // 5 rows: a full batch, and one row of the next
    auto rows = load_dataset(job->config, job->model);
    ASSERT_TRUE(rows.has_value()) << to_string(rows.error());
    ASSERT_EQ((*rows)->rows(Part::held_out), 5);
    Loader loader(job->model, std::move(*rows), 4, 1);
    const auto engine = Engine::create(*job);
    const auto reference = Reference::create(job->config);
    ASSERT_TRUE(engine.has_value() && reference.has_value());

    const auto held_out = evaluate(*job, loader, **engine, 0);

    auto again = load_dataset(job->config, job->model);
    ASSERT_TRUE(again.has_value());
    Loader whole(job->model, std::move(*again), 5, 1);
    const double expected = (*reference)->loss(*whole.evaluation(0, {0, 5}, whole.all_inputs()));
    ASSERT_TRUE(held_out.has_value()) << to_string(held_out.error());
    EXPECT_NEAR(held_out->loss, expected, 1e-12);
    EXPECT_EQ(held_out->tokens, whole.evaluation_tokens(0));
  }
}

}  // namespace
}  // namespace piper
