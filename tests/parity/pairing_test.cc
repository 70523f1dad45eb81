// B14: activations meet the labels of their own micro-batch.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "runtime/data/loader.h"
#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using testing::feed;

// Every token and label of row r is r.
Batch ids_of(const Job& job, std::int64_t rows, std::int64_t seq_len) {
  Batch batch;
  for (const Field& field : fields_of(job.model)) {
    at::Tensor tensor = at::empty({rows, seq_len}, at::kLong);
    for (std::int64_t r = 0; r < rows; ++r) {
      tensor[r].fill_(r);
    }
    batch.emplace(field.value, tensor);
  }
  return batch;
}

class Pairing : public ::testing::Test {
 protected:
  static Case case_of(std::uint32_t pp, std::uint32_t dp, std::uint32_t microbatches,
                      const std::string& schedule) {
    Case c;
    c.pp = pp, c.dp = dp, c.microbatches = microbatches, c.schedule = schedule;
    c.model = {"name = \"pass_through\"", "library = \"" PIPER_PASS_THROUGH_MODEL "\"",
               "layers = 4"};
    return c;
  }
};

TEST_F(Pairing, GivesALossOfExactlyZero) {
  for (const std::string schedule : {"1f1b", "gpipe"}) {
    for (const std::uint32_t pp : {1u, 2u, 4u}) {
      for (const std::uint32_t dp : {1u, 2u}) {
        for (const std::uint32_t microbatches : {12u, 101u}) {
          const Case c = case_of(pp, dp, microbatches, schedule);
          const auto job = make_job(c);
          ASSERT_TRUE(job.has_value()) << to_string(c) << '\n' << to_string(job.error());
          const auto engine = Engine::create(*job);
          ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
          const Batch batch = ids_of(*job, c.global_rows(), c.seq_len);

          const auto evaluated = (*engine)->evaluate_step(feed(job->plans.evaluate, batch, 1));
          const auto trained = (*engine)->train_step(feed(job->plans.train, batch, 1));

          ASSERT_TRUE(trained.has_value()) << to_string(c) << '\n' << to_string(trained.error());
          ASSERT_TRUE(evaluated.has_value()) << to_string(evaluated.error());
          EXPECT_EQ(trained->loss, 0) << to_string(c);
          EXPECT_EQ(evaluated->loss, 0) << to_string(c);
          EXPECT_EQ(trained->tokens, c.global_rows() * c.seq_len);
        }
      }
    }
  }
}

// The test above can fail: labels of the next row give a loss.
TEST_F(Pairing, SeesLabelsOfAnotherRow) {
  const Case c = case_of(2, 1, 12, "1f1b");
  const auto job = make_job(c);
  ASSERT_TRUE(job.has_value()) << to_string(job.error());
  const auto engine = Engine::create(*job);
  ASSERT_TRUE(engine.has_value());
  Batch batch = ids_of(*job, c.global_rows(), c.seq_len);
  batch[job->model.labels] = batch[job->model.labels].roll(1, 0);

  const auto trained = (*engine)->train_step(feed(job->plans.train, batch, 1));

  ASSERT_TRUE(trained.has_value());
  EXPECT_GT(trained->loss, 0.5);
}

}  // namespace
}  // namespace piper
