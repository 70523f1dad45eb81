// Activations meet the labels of their own micro-batch, and of two values of equal shape each is
// received as itself, also past the tenth (where an order of names puts `recv.10` before `recv.9`).
// Integers pass between stages.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "runtime/data/loader.h"
#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using testing::feed;
using testing::Schedule;

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

constexpr Schedule kSchedules[] = {
    {"interleaved1f1b", "gpipe", 1},
    {"interleaved1f1b", "1f1b", 1},
    {"interleaved1f1b", "interleaved", 2},
    {"zerobubble", "zb1p", 1},
    {"zerobubble", "zbv", 2},
    {"dualpipe", "dualpipev", 2},
    {"dualpipe", "dualpipe", 2},
};

Case case_of(const Schedule& schedule, std::uint32_t pp, std::uint32_t microbatches) {
  Case c = testing::case_of(schedule);
  c.pp = pp, c.microbatches = microbatches;
  c.model = {"name = \"pass_through\"", "library = \"" PIPER_PASS_THROUGH_MODEL "\"",
             "layers = " + std::to_string(2 * pp)};
  return c;
}

void expect_no_loss(const Case& c) {
  const Job job = testing::job_of(c);
  const auto engine = Engine::create(job);
  ASSERT_TRUE(engine.has_value()) << to_string(c) << '\n' << to_string(engine.error());
  const Batch batch = ids_of(job, c.global_rows(), c.seq_len);

  const auto evaluated = (*engine)->evaluate_step(feed(job.plans.evaluate, batch, 1));
  const auto trained = (*engine)->train_step(feed(job.plans.train, batch, 1));

  ASSERT_TRUE(trained.has_value()) << to_string(c) << '\n' << to_string(trained.error());
  ASSERT_TRUE(evaluated.has_value()) << to_string(c) << '\n' << to_string(evaluated.error());
  EXPECT_EQ(trained->loss, 0) << to_string(c);
  EXPECT_EQ(evaluated->loss, 0) << to_string(c);
  EXPECT_EQ(trained->tokens, c.global_rows() * c.seq_len);
}

class Pairing : public ::testing::TestWithParam<Schedule> {};

TEST_P(Pairing, GivesALossOfExactlyZero) {
  const bool both_ways = std::string(GetParam().name) == "dualpipe";
  for (const std::uint32_t pp : {2U, 4U}) {
    for (const std::uint32_t microbatches : {12U, both_ways ? 102U : 101U}) {
      for (const std::uint32_t dp : {1U, 2U}) {
        Case c = case_of(GetParam(), pp, microbatches);
        c.dp = dp;
        expect_no_loss(c);
      }
    }
  }
}

TEST_P(Pairing, OfIntegersIsThatOfOneDeviceInEveryStageOfZero) {
  for (const int stage : {0, 1, 2, 3}) {
    Case c = case_of(GetParam(), 2, 4);
    c.dp = 2;
    c.zero = "stage = " + std::to_string(stage) + "\nbucket_bytes = 1";
    const Job job = testing::job_of(c);
    const auto report = verify_parity(job, {.steps = 2}, testing::uneven_batches(job));
    ASSERT_TRUE(report.has_value()) << to_string(c) << '\n' << to_string(report.error());
    EXPECT_TRUE(report->passed) << to_string(c) << '\n' << report->text;
  }
}

INSTANTIATE_TEST_SUITE_P(Pipeline, Pairing, ::testing::ValuesIn(kSchedules),
                         [](const auto& instance) {
                           const std::string name = instance.param.name;
                           return name == "1f1b" ? "one_f_one_b" : name;
                         });

TEST(Pairing, OfOneRankGivesALossOfExactlyZero) {
  for (const std::uint32_t dp : {1U, 2U}) {
    Case c = case_of(kSchedules[0], 1, 12);
    c.dp = dp;
    expect_no_loss(c);
  }
}

// The tests above can fail: labels of the next row give a loss.
TEST(Pairing, SeesLabelsOfAnotherRow) {
  const Case c = case_of(kSchedules[1], 2, 12);
  const Job job = testing::job_of(c);
  const auto engine = Engine::create(job);
  ASSERT_TRUE(engine.has_value());
  Batch batch = ids_of(job, c.global_rows(), c.seq_len);
  batch[job.model.labels] = batch[job.model.labels].roll(1, 0);

  const auto trained = (*engine)->train_step(feed(job.plans.train, batch, 1));

  ASSERT_TRUE(trained.has_value());
  EXPECT_GT(trained->loss, 0.5);
}

}  // namespace
}  // namespace piper
