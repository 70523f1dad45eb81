// What --explain says of nodes of each kind, and of names that no node has.
#include "core/show/explain.h"

#include <gtest/gtest.h>

#include <string>

#include "core/plan/node_name.h"
#include "tests/support/golden.h"
#include "tests/support/sharded_toy.h"

namespace piper {
namespace {

struct Planned {
  Plans plans;
  PlanHistory history;
};

Planned planned(const test::ShardedShape& shape, Plan::Kind kind = Plan::Kind::train) {
  const test::ShardedJob job = test::sharded_job(shape);
  PlanHistory history(kind);
  Expected<Plans> plans =
      plan(job.config, job.model, {job.proposal}, [&](const Phase& phase) { history.see(phase); });
  PIPER_CHECK(plans.has_value(), "a job of the tests that has no plan");
  return {*std::move(plans), std::move(history)};
}

std::string explained(const Planned& of, const std::string& node) {
  const Expected<std::string> text = explain(of.plans.train, of.history, node);
  return text ? *text : to_string(text.error());
}

test::ShardedShape pipeline_shape() {
  test::ShardedShape shape;
  shape.zero = 0;
  shape.bucket_bytes = 0;
  return shape;
}

TEST(Explain, SaysWhatWhoAndWhy) {
  const Planned of = planned(pipeline_shape());
  std::string text;
  for (const char* node : {"0F2@0", "1B1@1", "send %4 m1@0", "recv grad %4 1 m1@0",
                           "all_reduce b0@0", "update b1@1", "grad_norm@0", "input@1"}) {
    text += explained(of, node) + '\n';
  }

  test::expect_golden("show/explain", text);
}

TEST(Explain, SaysWhyShardsAndExpertsMove) {
  test::ShardedShape shape;
  shape.ep = 2;
  shape.split_backward = true;
  const Planned of = planned(shape);
  std::string text;
  for (const char* node : {"all_gather b0 chain 0@0", "reduce_scatter b0 chain 0@0",
                           "all_to_all 0.1F0 in@0", "0.1BW1@0"}) {
    text += explained(of, node) + '\n';
  }

  test::expect_golden("show/explain_sharded", text);
}

TEST(Explain, TakesNumbersAndNamesWithoutSpacesOrProgram) {
  const Planned of = planned(pipeline_shape());
  const std::string expected = explained(of, "1F2@1");
  const NodeId node = [&] {
    for (const Task& task : of.plans.train.programs[1].tasks) {
      if (task.op == Op::forward && task.microbatch == 2) {
        return task.node;
      }
    }
    return none<NodeId>();
  }();

  EXPECT_EQ(explained(of, "1F2"), expected);
  EXPECT_EQ(explained(of, "1F2 @1"), expected);
  EXPECT_EQ(explained(of, "n" + std::to_string(index(node))), expected);
  EXPECT_EQ(explained(of, std::to_string(index(node))), expected);
  EXPECT_EQ(explained(of, "send%4m1@0"), explained(of, "send %4 m1@0"));
}

TEST(Explain, ExplainsEveryNodeOfEveryStrategy) {
  for (const test::ShardedShape& shape : test::small_shapes()) {
    const Planned of = planned(shape);
    for (std::size_t n = 0; n < of.plans.train.origin_of_node.size(); ++n) {
      const std::string text = explained(of, std::to_string(n));

      EXPECT_EQ(text.find("what comes before it"), std::string::npos)
          << to_string(shape) << "\na wait without a reason:\n"
          << text;
    }
  }
}

TEST(NodeNames, OfATaskAreThoseOfItsNode) {
  for (const test::ShardedShape& shape : test::small_shapes()) {
    const Planned of = planned(shape);
    const ModelGraph& model = of.history.annotated().model;
    const NodeNames names(of.plans.train, model);
    for (std::uint32_t p = 0; p < of.plans.train.programs.size(); ++p) {
      for (const Task& task : of.plans.train.programs[p].tasks) {
        EXPECT_EQ(names.of(of.plans.train, p, task), describe(of.history.dag(), model, task.node));
      }
    }
  }
}

TEST(Explain, RefusesUnknownAndAmbiguousNames) {
  const Planned of = planned(pipeline_shape());

  EXPECT_EQ(explained(of, "1F7@1"),
            "error: --explain: the plan has no node '1F7@1' (did you mean '1F0@1'?) "
            "[show.unknown_node]");
  EXPECT_EQ(explained(of, "warp"),
            "error: --explain: the plan has no node 'warp' (nodes have names like '0F0@0' and "
            "numbers from 0 to 34) [show.unknown_node]");
  EXPECT_EQ(explained(of, "grad_norm"),
            "error: --explain: 'grad_norm' is the name of 2 nodes: 'grad_norm@0', 'grad_norm@1' "
            "[show.ambiguous_node]");
}

}  // namespace
}  // namespace piper
