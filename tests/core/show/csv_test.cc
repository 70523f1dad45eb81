#include "core/show/csv.h"

#include <gtest/gtest.h>

#include "tests/support/sharded_toy.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

// The CSV of the plan for training, or the one for evaluation.
std::string csv_of(const Config& config, const ModelGraph& model,
                   const std::vector<Proposal>& proposals, bool evaluate = false) {
  OrderNotation notation;
  const auto plans =
      plan(config, model, proposals, [&](const Phase& phase) { notation.see(phase); });
  if (!plans) {
    return to_string(plans.error());
  }
  const auto text = csv(evaluate ? plans->evaluate : plans->train, model, notation);
  return text ? *text : to_string(text.error());
}

std::string csv_of(const test::ShardedShape& shape, bool evaluate = false) {
  const test::ShardedJob job = test::sharded_job(shape);
  return csv_of(job.config, job.model, {job.proposal}, evaluate);
}

std::string pipeline(const std::vector<Directive>& more = {}, bool evaluate = false) {
  const Config config = test::toy_config(2, 1, 2);
  const ModelGraph model = test::toy_model({.layers = 2});
  Proposal proposal = test::toy_pipeline(config, model);
  proposal.directives.insert(proposal.directives.end(), more.begin(), more.end());
  return csv_of(config, model, {proposal}, evaluate);
}

TEST(Csv, HasALineAPlace) {
  EXPECT_EQ(pipeline(), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(Csv, HasForwardsAloneWhereThePlanEvaluates) {
  EXPECT_EQ(pipeline({}, true), "0F0,0F1\n1F0,1F1\n");
}

TEST(Csv, WritesASplitBackwardAsTheChainDid) {
  const Directive split{SplitBackwardDirective{{{{"PP", Condition::Kind::equals, {0}}}, {}}}, {}};

  EXPECT_EQ(pipeline({split}), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(Csv, WritesASplitBackwardInTwoWithoutAChain) {
  const std::string text = csv_of({.pp = 1,
                                   .dp = 1,
                                   .microbatches = 1,
                                   .zero = 0,
                                   .bucket_bytes = 0,
                                   .split_backward = true,
                                   .ordered = false});

  EXPECT_EQ(text, "0F0,0I0,0W0\n");
}

TEST(Csv, WritesAStageInPiecesAsOne) {
  EXPECT_EQ(csv_of({.pp = 2, .dp = 2, .microbatches = 2, .zero = 3, .bucket_bytes = 1}),
            "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(Csv, IsStageZeroWithoutStages) {
  EXPECT_EQ(csv_of(test::toy_config(1, 2, 2), test::toy_model(), {}).substr(0, 3), "0F0");
}

TEST(Csv, WritesOneProgramWhereThatIsAsked) {
  const Config config = test::toy_config(2, 1, 2);
  const ModelGraph model = test::toy_model({.layers = 2});
  const auto plans = plan(config, model, {test::toy_pipeline(config, model)});
  ASSERT_TRUE(plans);

  EXPECT_EQ(*csv(plans->train, model, {}, 1), "1F0,1B0,1F1,1B1\n");
}

}  // namespace
}  // namespace piper
