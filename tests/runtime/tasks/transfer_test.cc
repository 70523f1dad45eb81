#include "tests/runtime/tasks/harness.h"

namespace piper::test {
namespace {

// Rank 0 sends h to rank 1.
struct Transfer {
  explicit Transfer(std::int64_t offset = Buffer::kNoOffset) : builder(1, 2) {
    ProgramBuilder& from = builder.program({0});
    ProgramBuilder& to = builder.program({1});
    const CommId link = builder.communicator(
        {.kind = Communicator::Kind::point_to_point, .stream = "send", .from = 0, .to = 1});
    const NodeId send = builder.node(), recv = builder.node();
    const Buffer h{.kind = Buffer::Kind::activation, .value = kH, .bytes = {16, 0}};
    sent = from.buffer(h);
    received = to.buffer(h);
    to.arena(64);
    from.task(from.stream("send"),
              {.node = send, .op = Op::send, .value = kH, .communicator = link, .peer = recv},
              {.reads = {sent}, .frees = {sent}});
    Task receive{.node = recv, .op = Op::recv, .value = kH, .communicator = link, .peer = send};
    to.task(to.stream("recv"), receive, {.writes = {received}});
    plan = builder.build();
    plan.programs[1].buffers[0].offset = offset;
  }
  PlanBuilder builder;
  BufferId sent, received;
  Plan plan;
};

TEST(Transfer, BringsAValueToItsPeer) {
  for (const std::int64_t offset : {Buffer::kNoOffset, std::int64_t{0}}) {
    const Transfer transfer(offset);
    TaskHarness harness(transfer.plan);
    harness.tensor(0, transfer.sent) = rows({1, 3, 2, 4}).t();  // strided

    harness.run();

    expect_equal(harness.tensor(1, transfer.received), rows({1, 2, 3, 4}));
    EXPECT_EQ(harness.cell<TensorCell>(1, transfer.received).in_arena, offset == 0);
    EXPECT_FALSE(harness.tensor(0, transfer.sent).defined()) << "it is freed";
    EXPECT_EQ(harness.moved(0, 0), 32);
  }
}

TEST(Transfer, RefusesAValueOfOtherSizesThanThePlans) {
  const Transfer transfer;
  TaskHarness harness(transfer.plan);
  harness.tensor(0, transfer.sent) = rows({1, 2, 3, 4, 5, 6});

  try {
    harness.run();
    ADD_FAILURE() << "it was sent";
  } catch (const TaskFailure& failure) {
    EXPECT_EQ(failure.code(), "run.shape");
    EXPECT_STREQ(failure.what(),
                 "expected a value of sizes [2, 2] and type Double, got [3, 2] and Double");
  }
}

}  // namespace
}  // namespace piper::test
