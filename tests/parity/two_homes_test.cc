// `dualpipe` keeps each stage on two ranks, and ZeRO a part of it on each: what a file gets is the
// whole, once, and what one device computes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/train/compare.h"
#include "runtime/train/train.h"
#include "tests/parity/harness.h"
#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::Case;

constexpr std::int64_t kRows = 9;

std::string rows_of_ids(std::int64_t seq_len) {
  std::string lines;
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<std::int64_t> tokens, labels;
    for (std::int64_t i = 0; i < seq_len; ++i) {
      tokens.push_back((row * 7 + i * 5) % testing::kVocab);
      labels.push_back(i < row % seq_len ? -100 : (row + i * 11) % testing::kVocab);
    }
    lines += nlohmann::json{{"tokens", tokens}, {"labels", labels}}.dump() + '\n';
  }
  return lines;
}

// The weights that three steps of training leave in a file.
std::map<std::string, at::Tensor> trained(Case c, const testing::Folder& folder,
                                          const std::string& name) {
  c.rows = kRows;
  c.max_norm = 0.1;  // so that the norm counts
  c.sections = {"[checkpoint]\nlast_save_in_hf = true\nlast_save_path = \"" + folder.path(name) +
                "\""};
  auto job = make_job(c);
  EXPECT_TRUE(job.has_value()) << to_string(job.error());
  job->config.training.steps = 3;
  job->config.training.dataset_path = {folder.write("rows.jsonl", rows_of_ids(c.seq_len))};
  job->config.validation.fraction = 0;
  const auto summary = train(*job, {});
  EXPECT_TRUE(summary.has_value()) << to_string(summary.error());
  auto tensors = load_tensors(folder.path(name));
  EXPECT_TRUE(tensors.has_value()) << to_string(tensors.error());
  return std::move(*tensors);
}

TEST(TwoHomes, SaveWhatOneDeviceSaves) {
  for (const bool tied : {false, true}) {
    const testing::Folder folder;
    Case c;
    c.tied = tied;
    const auto one = trained(c, folder, "one");
    c.plugin = "dualpipe", c.schedule = "dualpipe";
    c.pp = 2, c.microbatches = 4;

    const auto both = trained(c, folder, "both");

    ASSERT_EQ(both.size(), one.size());
    for (const auto& [name, tensor] : one) {
      ASSERT_EQ(both.count(name), 1u) << name;
      EXPECT_LE(relative_error(both.at(name), tensor), 1e-10) << name;
    }
  }
}

TEST(Shards, AreSavedAsTheWholeOfOneDevice) {
  for (const std::string stage : {"1", "2", "3"}) {
    const testing::Folder folder;
    Case c;
    c.tied = true;
    const auto one = trained(c, folder, "one");
    c.zero = "stage = " + stage + "\nbucket_bytes = 5000";
    c.pp = 2, c.dp = 3, c.microbatches = 3;

    const auto shards = trained(c, folder, "shards");

    ASSERT_EQ(shards.size(), one.size());
    for (const auto& [name, tensor] : one) {
      ASSERT_EQ(shards.count(name), 1u) << name;
      EXPECT_LE(relative_error(shards.at(name), tensor), 1e-10) << name;
    }
  }
}

TEST(TwoHomes, AreOfEveryParameter) {
  Case c;
  c.plugin = "dualpipe", c.schedule = "dualpipe";
  c.pp = 2, c.microbatches = 4;
  const auto job = make_job(c);
  ASSERT_TRUE(job.has_value()) << to_string(job.error());

  const auto engine = Engine::create(*job);

  ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
  for (std::uint32_t i = 0; i < job->model.parameters.size(); ++i) {
    for (const std::uint32_t rank : {0U, 1U}) {
      EXPECT_TRUE((*engine)->parameter(rank, ParameterId{i}).defined())
          << job->model.parameters[i].name;
    }
  }
}

}  // namespace
}  // namespace piper
