#include "runtime/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using testing::Folder;
using testing::job_of;
using testing::model_of_text;

constexpr auto kTokens = static_cast<ValueId>(0);
constexpr auto kLabels = static_cast<ValueId>(1);

// `rows` rows of two tokens; row i is [i, i], its labels [i, ignored].
Loader loader_of(const Folder& folder, int rows, std::int64_t global_rows, double held_out) {
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const std::string id = std::to_string(i);
    text += "{\"tokens\": [" + id + ", " + id + "], \"labels\": [" + id + ", -100]}\n";
  }
  Config config = job_of({folder.write("rows.jsonl", text)}, 2, global_rows);
  config.training.dataset = Dataset::jsonl;
  config.validation.fraction = held_out;
  const ModelGraph model = model_of_text(2);
  return Loader(model, std::move(*load_dataset(config, model)), global_rows, /*seed=*/3);
}

TEST(Loader, BlocksOfABatchAreTheBatch) {
  const Folder folder;
  Loader loader = loader_of(folder, 20, 7, 0);

  const Batch whole = *loader.training(2, {0, 7}, {kTokens, kLabels});
  const Batch first = *loader.training(2, cut_rows({0, 7}, 2, 0), {kTokens, kLabels});
  const Batch second = *loader.training(2, cut_rows({0, 7}, 2, 1), {kTokens, kLabels});

  EXPECT_TRUE(whole.at(kTokens).narrow(0, 0, 4).equal(first.at(kTokens)));
  EXPECT_TRUE(whole.at(kTokens).narrow(0, 4, 3).equal(second.at(kTokens)));
  EXPECT_TRUE(whole.at(kLabels).narrow(0, 4, 3).equal(second.at(kLabels)));
}

TEST(Loader, LabelsStayWithTheirTokens) {
  const Folder folder;
  Loader loader = loader_of(folder, 20, 7, 0);

  for (std::int64_t step = 1; step <= 10; ++step) {
    const Batch batch = *loader.training(step, {0, 7}, {kTokens, kLabels});
    EXPECT_TRUE(batch.at(kTokens).select(1, 0).equal(batch.at(kLabels).select(1, 0)));
  }
}

TEST(Loader, StepsGoThroughAllRowsBeforeOneComesAgain) {
  const Folder folder;
  Loader loader = loader_of(folder, 20, 5, 0);

  std::map<std::int64_t, int> seen;
  for (std::int64_t step = 1; step <= 4; ++step) {
    const at::Tensor tokens = loader.training(step, {0, 5}, {kTokens})->at(kTokens);
    for (std::int64_t i = 0; i < 5; ++i) {
      ++seen[tokens[i][0].item<std::int64_t>()];
    }
  }

  EXPECT_EQ(seen.size(), 20u);
}

TEST(Loader, DeliversOnlyWhatIsAskedFor) {
  const Folder folder;
  Loader loader = loader_of(folder, 20, 5, 0);

  const Batch batch = *loader.training(1, {0, 5}, {kLabels});

  EXPECT_EQ(batch.size(), 1u);
  EXPECT_TRUE(batch.count(kLabels));
}

TEST(Loader, EvaluationCountsEveryHeldOutRowOnceAndPaddingNever) {
  const Folder folder;
  const Loader loader = loader_of(folder, 20, 4, 0.5);

  ASSERT_EQ(loader.evaluation_batches(), 3);
  std::map<std::int64_t, int> counted;
  for (std::int64_t batch = 0; batch < 3; ++batch) {
    const at::Tensor labels = loader.evaluation(batch, {0, 4}, {kLabels})->at(kLabels);
    ASSERT_EQ(labels.size(0), 4);
    for (std::int64_t i = 0; i < 4; ++i) {
      if (const auto label = labels[i][0].item<std::int64_t>(); label != kIgnoredLabel) {
        ++counted[label];
      }
    }
  }
  EXPECT_EQ(counted.size(), 10u);
  EXPECT_TRUE(std::all_of(counted.begin(), counted.end(),
                          [](const auto& seen) { return seen.second == 1; }));
  EXPECT_EQ(loader.evaluation_tokens(0), 4);
  EXPECT_EQ(loader.evaluation_tokens(2), 2);
}

TEST(Loader, SaysWhereTheFirstRowOfAStepIs) {
  const Folder folder;
  Loader loader = loader_of(folder, 20, 5, 0);

  for (std::int64_t step = 1; step <= 3; ++step) {
    const auto batch = loader.training(step, {0, 5}, {kTokens});
    const auto first = batch->at(kTokens)[0][0].item<std::int64_t>();
    EXPECT_EQ(to_string(loader.place_of(step)),
              folder.path("rows.jsonl") + ":" + std::to_string(first + 1));
  }
}

}  // namespace
}  // namespace piper
