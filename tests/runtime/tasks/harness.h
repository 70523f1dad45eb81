// Tasks of a small plan without an engine. Ranks are threads; each launches its tasks one after the
// other, in the order of their numbers. What buffers hold is set and read between runs.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "runtime/comm/local/connect.h"
#include "runtime/device/cpu/device.h"
#include "runtime/tasks/make_task.h"
#include "tests/support/plan_builder.h"

namespace piper::test {

// Two regions in float64: h = x * w and loss = sum(h * v). A row of x, and each weight, has two
// elements.
inline constexpr ValueId kX{0}, kLabels{1}, kH{2}, kLoss{3};
inline constexpr ParameterId kW{0}, kV{1};
LiveModel line_model();

// A plan of that model: each region is a chunk, each weight a bucket, and `ranks` are replicas.
// Tasks, streams and buffers are to be added to `program`.
struct LinePlan {
  explicit LinePlan(std::vector<std::uint32_t> ranks, std::uint32_t microbatches = 1,
                    std::int64_t rows = 2);
  Bucket& bucket(BucketId id) { return builder.plan().buckets[index(id)]; }
  Chunk& chunk(std::uint32_t id) { return builder.plan().chunks[id]; }
  CommId collective(std::vector<std::uint32_t> members, std::uint32_t group_size = 0) {
    return builder.communicator(
        {.stream = "reduce", .ranks = std::move(members), .group_size = group_size});
  }

  PlanBuilder builder;
  ProgramBuilder& program;
  StreamId compute, reduce;
};

const Config& plain_config();  // the defaults

class TaskHarness {
 public:
  explicit TaskHarness(Plan plan, const Config& config = plain_config());

  // Gives a rank its home of a bucket: what it keeps of the values, and the part of that which it
  // updates (null: all). Where that is the whole bucket, the model's parameters are in it.
  BucketState& hold(std::uint32_t rank, BucketId id, const at::Tensor& value,
                    const at::Tensor& part = {});

  Rank& rank(std::uint32_t number) { return *ranks_[number]; }
  template <typename C>
  C& cell(std::uint32_t rank, BufferId id) {
    make_all_cells();
    return std::get<C>(cells_[rank][index(id)]);
  }
  at::Tensor& tensor(std::uint32_t rank, BufferId id) { return cell<TensorCell>(rank, id).tensor; }
  double number(std::uint32_t rank, BufferId id) {
    return cell<ScalarCell>(rank, id).number.item<double>();
  }
  // Bytes that a rank's task has moved.
  std::int64_t moved(std::uint32_t rank, std::uint32_t task) const { return moved_[rank][task]; }

  // Makes the tasks, once all is held.
  Status make();
  // Runs every task of every rank once, and makes them before. Throws what the first that failed
  // threw.
  void run(std::int64_t step = 1);
  // One task of a rank, on the calling thread.
  void run_task(std::uint32_t rank, std::uint32_t task);

 private:
  void make_all_cells();

  Plan plan_;
  Config config_;
  Cancellation cancellation_;
  CpuDevice device_;
  LocalConnections connections_;
  std::vector<Communications> communications_;
  Switches switches_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<at::Tensor> arenas_;
  std::vector<std::vector<Cell>> cells_;
  std::vector<std::vector<std::int64_t>> moved_;
  std::vector<std::vector<std::unique_ptr<TaskBody>>> bodies_;
  std::vector<std::unique_ptr<DeviceStream>> streams_;
  std::uint64_t generation_ = 0;
};

inline at::Tensor numbers(std::initializer_list<double> values) {
  return at::tensor(values, at::kDouble);
}
inline at::Tensor rows(std::initializer_list<double> values) {
  return numbers(values).view({-1, 2});
}

// In type, sizes and every bit.
void expect_equal(const at::Tensor& got, const at::Tensor& expected);

}  // namespace piper::test
