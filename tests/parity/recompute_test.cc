// Recomputation changes no bit of a step: losses, gradients, norms and weights are those of the
// same job that keeps its activations, dropout included; and both are one device's.
//
// The cells are every schedule x {every layer, attention alone, all but the layers} with a type and
// tied embeddings or not in turn; rows do not divide evenly into micro-batches.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using testing::Schedule;

constexpr Schedule kSchedules[] = {
    {"interleaved1f1b", "1f1b", 1},
    {"interleaved1f1b", "gpipe", 1},
    {"interleaved1f1b", "interleaved", 2},
    {"zerobubble", "zb1p", 1},
    {"zerobubble", "zbv", 2},
    {"zerobubble", "interleaved_zb", 2},
    {"zerobubble", "v_min", 2},
    {"dualpipe", "dualpipev", 2},
    {"dualpipe", "dualpipe", 2},
};

constexpr const char* kModes[] = {
    "[activation_checkpoint]\nmode = \"full\"",
    "[activation_checkpoint]\nmode = \"selective\"\nfilter = { attention = \"*\" }",
    // The embedding, the last norm, the output layer and the loss.
    "[activation_checkpoint]\nmode = \"selective\"\nfilter = { layer = \"-\" }",
};

constexpr const char* kTypes[] = {"float64", "float32", "bfloat16"};

Case cell(const Schedule& schedule) {
  Case c = testing::case_of(schedule);
  c.pp = 2, c.microbatches = 4;
  c.layers = 6;
  c.dropout = 0.3;
  c.max_norm = 0.5;
  return c;
}

// All that two steps leave, in one order.
std::vector<at::Tensor> outcome(const Case& c) {
  std::vector<at::Tensor> all;
  const auto job = make_job(c);
  EXPECT_TRUE(job.has_value()) << to_string(c) << '\n' << to_string(job.error());
  const auto engine = job ? Engine::create(*job) : tl::unexpected(job.error());
  if (!engine) {
    ADD_FAILURE() << to_string(engine.error());
    return all;
  }
  (*engine)->keep_gradients(true);
  const GlobalBatch batches = testing::uneven_batches(*job);
  for (std::int64_t step = 1; step <= 2; ++step) {
    const Batch batch = batches(step);
    const auto result = (*engine)->train_step(testing::feed(job->plans.train, batch, step));
    if (!result) {
      ADD_FAILURE() << to_string(c) << '\n' << to_string(result.error());
      return all;
    }
    all.push_back(at::tensor({result->loss, result->grad_norm}, at::kDouble));
    for (std::uint32_t rank = 0; rank < job->plans.train.world; ++rank) {
      const Program& program = job->plans.train.programs[job->plans.train.seat(rank).program];
      for (const BucketId bucket : program.buckets) {
        for (const ParameterId id : job->plans.train.buckets[index(bucket)].parameters) {
          const at::Tensor gradient = (*engine)->gradient(rank, id);
          all.push_back(gradient.defined() ? gradient.clone() : at::Tensor(at::zeros({})));
          all.push_back((*engine)->master(rank, id).clone());
        }
      }
    }
  }
  return all;
}

void expect_same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                      const std::string& what) {
  ASSERT_GT(a.size(), 4U) << what;
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(at::equal(a[i], b[i]))
        << what << ": tensor " << i << " differs by " << (a[i] - b[i]).abs().max().item<double>();
  }
}

class Recomputed : public ::testing::TestWithParam<Schedule> {};

TEST_P(Recomputed, StepsAreTheSameBitForBit) {
  std::size_t number = static_cast<std::size_t>(&GetParam() - kSchedules);
  for (const char* const mode : kModes) {
    Case c = cell(GetParam());
    c.dtype = kTypes[number % 3];
    c.tied = number % 2 == 0;
    const std::vector<at::Tensor> kept = outcome(c);
    c.sections = {mode};
    expect_same_bits(outcome(c), kept, to_string(c) + '\n' + mode);
    ++number;
  }
}

TEST_P(Recomputed, StepsAreThoseOfOneDevice) {
  for (const std::uint32_t dp : {1U, 2U}) {
    Case c = cell(GetParam());
    c.dp = dp;
    c.tied = dp == 2;
    c.sections = {kModes[0]};
    const auto job = make_job(c);
    ASSERT_TRUE(job.has_value()) << to_string(job.error());
    const auto report = verify_parity(*job, {.steps = 2}, testing::uneven_batches(*job));
    ASSERT_TRUE(report.has_value()) << to_string(c) << '\n' << to_string(report.error());
    EXPECT_TRUE(report->passed) << to_string(c) << '\n' << report->text;
  }
}

INSTANTIATE_TEST_SUITE_P(Pipeline, Recomputed, ::testing::ValuesIn(kSchedules),
                         [](const auto& instance) {
                           const std::string name = instance.param.name;
                           return name == "1f1b" ? "one_f_one_b" : name;
                         });

// One stage: embedding and output layer are on one rank, and share a bucket with all layers.
TEST(Recomputed, StepsOfOneStageWithATiedEmbeddingAreTheSameBitForBit) {
  for (const char* const type : kTypes) {
    Case c;
    c.microbatches = 3;
    c.tied = true;
    c.dtype = type;
    const std::vector<at::Tensor> kept = outcome(c);
    for (const char* const mode : kModes) {
      c.sections = {mode};
      expect_same_bits(outcome(c), kept, to_string(c) + '\n' + mode);
    }
  }
}

// What is gathered for a recomputation is there for its backward.
TEST(Recomputed, StepsOfShardedParametersAreTheSameBitForBit) {
  for (const std::size_t schedule : {0U, 4U, 7U}) {
    for (const char* const zero : {"stage = 1", "stage = 2", "stage = 3\nbucket_bytes = 1",
                                   "stage = 3\nkeep_gathered = \"step\""}) {
      Case c = cell(kSchedules[schedule]);
      c.dp = 2;
      c.zero = zero;
      c.dtype = kTypes[schedule % 3];
      const std::vector<at::Tensor> kept = outcome(c);
      c.sections = {kModes[0]};
      expect_same_bits(outcome(c), kept, to_string(c) + '\n' + zero);
    }
  }
}

TEST(Recomputed, StepsWithFrozenLayersAreTheSameBitForBit) {
  Case c = cell(kSchedules[0]);
  c.freeze = {"model.embed_tokens.weight", "model.layers.0.*", "model.layers.4.*"};
  const std::vector<at::Tensor> kept = outcome(c);
  c.sections = {kModes[0]};
  expect_same_bits(outcome(c), kept, to_string(c));
}

// Else the tests above would compare nothing with nothing.
TEST(Recomputed, StepsDependOnDropout) {
  Case c = cell(kSchedules[0]);
  const std::vector<at::Tensor> with = outcome(c);
  c.dropout = 0;
  const std::vector<at::Tensor> without = outcome(c);

  EXPECT_NE(with[0][0].item<double>(), without[0][0].item<double>());
}

}  // namespace
}  // namespace piper
