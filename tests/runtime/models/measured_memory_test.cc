// What capture says of memory, against what LibTorch's allocator counts when a region really runs.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>

#include <optional>

#include "runtime/memory/account.h"
#include "runtime/tasks/split_backward.h"
#include "tests/runtime/models/running_model.h"

namespace piper {
namespace {

constexpr std::int64_t kRows = 7;

class MeasuredMemory : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    install_counting_allocator();
    Config config;
    config.model.flavor = "debug";
    config.training.dtype = GetParam();
    config.training.seq_len = 64;
    LiveModel live = value_of(build_model(config, true));
    graph_ = live.graph;
    functions_ = live.regions;
    model_.emplace(std::move(live));  // the handles in the functions see its parameters
  }

  // Zeros, with a history where the model's value has a gradient.
  at::Tensor argument(ValueId id) const {
    const Value& value = graph_.value(id);
    std::vector<std::int64_t> shape;
    for (const Affine& size : value.shape) {
      shape.push_back(size.at(kRows));
    }
    const at::Tensor zeros = at::zeros(shape, to_torch(value.dtype));
    return value.needs_gradient() ? zeros.set_requires_grad(true) : zeros;
  }

  ModelGraph graph_;
  std::vector<RegionFunction> functions_;
  std::optional<RunningModel> model_;
};

TEST_P(MeasuredMemory, OfWhatAutogradKeepsIsExact) {
  const auto account = open_account();
  for (std::size_t i = 0; i < graph_.regions.size(); ++i) {
    Tensors leaves;
    for (const ValueId id : graph_.regions[i].inputs) {
      leaves.push_back(argument(id));
    }
    std::vector<std::shared_ptr<torch::autograd::Node>> autograd_graph;
    {
      const Charge charge(account.get(), Holding::activation);
      Tensors arguments;
      for (const at::Tensor& leaf : leaves) {
        arguments.push_back(leaf.clone());
      }
      for (const at::Tensor& result : functions_[i](arguments)) {
        autograd_graph.push_back(result.grad_fn());
      }
    }

    EXPECT_EQ(account->live(), graph_.regions[i].saved_bytes.at(kRows)) << "region " << i;
  }
}

// Between the halves of a split backward nothing is left but what was planned for the second, less
// what two gradients share: the output's arrives at the last operation on a weight as it is.
TEST_P(MeasuredMemory, OfWhatWaitsForTheWeightsIsAsPlanned) {
  const auto account = open_account();
  for (std::size_t i = 0; i < graph_.regions.size(); ++i) {
    Tensors leaves;
    for (const ValueId id : graph_.regions[i].inputs) {
      leaves.push_back(argument(id));
    }
    WeightGradients later;
    {
      const Charge charge(account.get(), Holding::activation);
      Tensors arguments, wanted;
      for (const at::Tensor& leaf : leaves) {
        arguments.push_back(leaf.clone());
        if (leaf.requires_grad()) {
          wanted.push_back(leaf);
        }
      }
      const Tensors outputs = functions_[i](arguments);
      arguments.clear();
      backward_input(outputs, {at::ones_like(outputs[0])}, wanted, later);
    }

    const std::int64_t planned = graph_.regions[i].pending_bytes.at(kRows);
    EXPECT_LE(account->live(), planned) << "region " << i;
    EXPECT_GE(account->live(),
              planned - graph_.value(graph_.regions[i].outputs[0]).bytes().at(kRows))
        << "region " << i;
    backward_weight(later);
    EXPECT_EQ(account->live(), 0) << "region " << i;
  }
}

TEST_P(MeasuredMemory, OfTheForwardPassIsExactWhileKernelsNeedLessWorkspaceThanThat) {
  const auto account = open_account();
  for (std::size_t i = 0; i < graph_.regions.size(); ++i) {
    Tensors arguments;
    for (const ValueId id : graph_.regions[i].inputs) {
      arguments.push_back(argument(id));
    }
    const Charge charge(account.get(), Holding::activation);
    account->reset_peak();

    const Tensors results = functions_[i](arguments);

    EXPECT_EQ(account->peak() - account->live(), graph_.regions[i].transient_bytes.at(kRows))
        << "region " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MeasuredMemory,
                         testing::Values(DType::float32, DType::float64, DType::bfloat16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace piper
