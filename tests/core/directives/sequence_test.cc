// The order of plugins and tables in a job file changes no byte of its plans.
#include "core/directives/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/directives/annotate.h"
#include "core/pipeline.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::toy_config;
using test::toy_model;

Filter equals(const std::string& tag, std::uint32_t value) {
  return {{{tag, Condition::Kind::equals, {value}}}, {}};
}

Condition range(const std::string& tag, std::uint32_t first, std::uint32_t last) {
  return {tag, Condition::Kind::in_range, {first, last}};
}

ReplicateDirective zero3(std::uint32_t stage) {
  ReplicateDirective what;
  what.filter = equals("PP", stage);
  what.shard_optimizer = what.shard_grads = what.shard_params = true;
  return what;
}

// A strategy, or with "job" tables, written from that line on.
Proposal proposal(const std::string& plugin, std::vector<decltype(Directive::what)> says,
                  std::uint32_t line) {
  Proposal made;
  made.from = {plugin, {"job.toml", line, 1}};
  made.unordered = plugin == "job";
  for (auto& what : says) {
    const std::uint32_t own = made.unordered ? line++ : line;
    made.directives.push_back({std::move(what), {plugin, {"job.toml", own, 1}}});
  }
  return made;
}

// Calls `each` with every order of `count` things.
template <typename Each>
void permute(std::size_t count, Each&& each) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  do {
    each(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

std::string plans_text(const Config& config, const ModelGraph& model,
                       const std::vector<Proposal>& proposals) {
  const auto plans = plan(config, model, proposals);
  return plans ? print(plans->train, model) + print(plans->evaluate, model)
               : to_string(plans.error());
}

TEST(Sequence, OfStrategiesIsTheSameInEveryOrderOfTheirTables) {
  const Config config = toy_config(2, 2, 3);
  const ModelGraph model = toy_model();
  std::set<std::string> texts;

  permute(3, [&](const std::vector<std::size_t>& order) {
    std::vector<Proposal> proposals(3);
    for (std::size_t at = 0; at < 3; ++at) {
      const auto line = static_cast<std::uint32_t>(10 * at + 7);
      proposals[at] =
          order[at] == 0 ? test::toy_pipeline(config, model)
          : order[at] == 1
              ? proposal("zero", {zero3(0), TagDirective{equals("layer", 0), "FIRST", 0}}, line)
              : proposal("last", {zero3(1), TagDirective{equals("layer", 3), "LAST", 0}}, line);
      proposals[at].from.where.line = line;
    }
    texts.insert(plans_text(config, model, proposals));
  });

  EXPECT_EQ(texts.size(), 1U) << *texts.rbegin();
  EXPECT_TRUE(texts.begin()->starts_with("piper-plan")) << *texts.begin();
}

TEST(Sequence, OfTablesIsTheSameInEveryOrder) {
  const Config config = toy_config(2, 1, 2);
  const ModelGraph model = toy_model();
  const std::vector<decltype(Directive::what)> tables{
      TagDirective{{{range("REGION", 0, 2)}, {}}, "PP", 0},
      TagDirective{{{{"PP", Condition::Kind::absent, {}}}, {}}, "PP", 1},
      TagDirective{equals("PP", 1), "HALF", 7},
      PlaceDirective{equals("PP", 0), {{0}}, "compute"},
      PlaceDirective{equals("PP", 1), {{1}}, "compute"},
      OrderChainDirective{{{1}}, {{1, 1, Pass::forward}, {1, 0, Pass::forward}}},
  };
  std::set<std::string> texts;

  permute(tables.size(), [&](const std::vector<std::size_t>& order) {
    std::vector<decltype(Directive::what)> says;
    for (const std::size_t i : order) {
      says.push_back(tables[i]);
    }
    Proposal job = proposal("job", says, 5);
    job.claims = {{Claim::Kind::axis, "pp", job.from}};
    texts.insert(plans_text(config, model, {job}));
  });

  EXPECT_EQ(texts.size(), 1U) << *texts.rbegin();
  EXPECT_TRUE(texts.begin()->starts_with("piper-plan")) << *texts.begin();
}

TEST(Sequence, GivesATagBeforeOthersUseIt) {
  const Proposal user = proposal("a", {TagDirective{equals("PP", 0), "USED", 0}}, 3);
  const Proposal giver = proposal("z", {TagDirective{{}, "PP", 0}}, 9);
  const std::vector<Proposal> proposals{user, giver};

  const auto order = sequence(proposals);

  ASSERT_TRUE(order);
  EXPECT_EQ(order->origins[order->steps[0].origin].plugin, "z");
  EXPECT_EQ(order->origins[order->steps[1].origin].plugin, "a");
}

TEST(Sequence, RefusesTagsThatWaitForEachOther) {
  const Proposal one = proposal("a", {TagDirective{equals("Y", 0), "X", 0}}, 3);
  const Proposal two = proposal("b", {TagDirective{equals("X", 0), "Y", 0}}, 9);
  const std::vector<Proposal> proposals{two, one};

  const auto order = sequence(proposals);

  ASSERT_FALSE(order);
  EXPECT_EQ(to_string(order.error()),
            "job.toml:3:1: error: a: tag: a filter uses a tag that others give, whose filters use "
            "a tag given here [tag.cycle]\n"
            "job.toml:9:1: note: one of the others, of b");
}

TEST(Sequence, KeepsTheOrderOfAStrategysOwnDirectives) {
  const Proposal one =
      proposal("a", {TagDirective{{}, "Z", 0}, TagDirective{equals("Z", 0), "A", 1}}, 3);
  const std::vector<Proposal> proposals{one};

  const auto order = sequence(proposals);

  ASSERT_TRUE(order);
  EXPECT_EQ(std::get<TagDirective>(order->steps[0].directive->what).name, "Z");
}

TEST(Sequence, MakesTwoIndicesOfOneTagAConflictInEveryOrder) {
  const Proposal one = proposal("a", {TagDirective{{}, "PP", 0}}, 3);
  const Proposal two = proposal("b", {TagDirective{equals("layer", 1), "PP", 1}}, 9);

  const auto forth = annotate(toy_config(1, 1, 1), toy_model(), {one, two});
  const auto back = annotate(toy_config(1, 1, 1), toy_model(), {two, one});

  ASSERT_FALSE(forth);
  ASSERT_FALSE(back);
  EXPECT_EQ(to_string(forth.error()),
            "job.toml:9:1: error: b: region 2 layer=1 PP=0 (toy.cc:12) already has PP=0; cannot "
            "give it PP=1 [tag.conflict]\njob.toml:3:1: note: first given by a");
  EXPECT_EQ(to_string(back.error()), to_string(forth.error()));
}

TEST(Claims, OfAPluginAndOfATableShowBothWithTheirLines) {
  Proposal plugin = proposal("zig", {}, 3);
  plugin.claims = {{Claim::Kind::axis, "pp", plugin.from}};
  Proposal job = proposal("job", {PlaceDirective{{}, {{0}}, "compute"}}, 9);
  job.claims = {{Claim::Kind::axis, "pp", job.directives[0].from}};

  const auto dag = annotate(toy_config(2, 1, 1), toy_model(), {plugin, job});

  ASSERT_FALSE(dag);
  EXPECT_EQ(to_string(dag.error()),
            "job.toml:9:1: error: job and zig both claim mesh axis 'pp' [claim.conflict]\n"
            "job.toml:3:1: note: first claimed by zig");
}

}  // namespace
}  // namespace piper
