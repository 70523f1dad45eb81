// plan.order: a plan that computes the right thing in another order than the job asks for.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/directives/annotate.h"
#include "core/verify/verify.h"
#include "tests/support/job_spec.h"
#include "tests/support/plan_edit.h"

namespace piper {
namespace {

using test::JobSpec;

// Exchanges the forwards of two micro-batches on one rank, which changes no result.
std::string refusal(JobSpec::Order order, std::uint32_t first, std::uint32_t second) {
  JobSpec spec;
  spec.microbatches = 3;
  spec.order = order;
  const test::SpecJob job = make_job(spec);
  const auto annotated = annotate(job.config, job.model, {job.proposal});
  Expected<Plans> plans = test::plan(job);
  PIPER_CHECK(annotated && plans, plans ? "" : to_string(plans.error()));
  {
    test::ProgramEdit edit(plans->train, 0);
    edit.swap(edit.find(Op::forward, first), edit.find(Op::forward, second));
  }
  EXPECT_TRUE(verify(plans->train, job.model));
  const Status status = verify_order(plans->train, job.model, *annotated);
  return status ? "accepted" : to_string(status.error()) + '\n';
}

TEST(DirectedOrder, OfAChainIsKept) {
  const std::string text = refusal(JobSpec::Order::forward_first, 1, 2);

  EXPECT_EQ(text,
            "job.toml:7:1: error: forward PP=0 mb 2 on rank 0 (stream compute) runs before forward "
            "PP=0 mb 1 on rank 0 (stream compute), which spec orders before it [plan.order]\n");
  std::ostringstream docs;
  docs << std::ifstream(std::string(PIPER_SOURCE_DIR) + "/docs/verifier.md").rdbuf();
  EXPECT_NE(docs.str().find("\n```text\n" + text + "```\n"), std::string::npos);
}

TEST(DirectedOrder, OfFiltersIsKept) {
  EXPECT_EQ(refusal(JobSpec::Order::by_microbatch, 1, 2),
            "job.toml:7:1: error: forward PP=0 mb 2 on rank 0 (stream compute) runs before forward "
            "PP=0 mb 1 on rank 0 (stream compute), which spec orders before it [plan.order]\n");
}

TEST(DirectedOrder, IsFreeWhereNobodyAsksForOne) {
  EXPECT_EQ(refusal(JobSpec::Order::by_pass, 1, 2), "accepted");
  EXPECT_EQ(refusal(JobSpec::Order::none, 1, 2), "accepted");
}

}  // namespace
}  // namespace piper
