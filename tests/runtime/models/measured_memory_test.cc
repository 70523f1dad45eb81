// What capture says of memory, against what LibTorch's allocator counts when a region really runs.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <optional>

#include "runtime/autograd/split_backward.h"
#include "runtime/memory/account.h"
#include "runtime/models/find_model.h"
#include "tests/runtime/models/running_model.h"

namespace piper {
namespace {

constexpr std::int64_t kRows = 7;

class MeasuredMemory : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    install_counting_allocator();
    at::set_num_threads(1);
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

  // Of a region with its results, of which some have gradients.
  struct Forward {
    Tensors leaves, results, roots, gradients;
    std::int64_t held = 0;  // by results
  };

  // Charged; gradients are not.
  Forward forward(std::size_t region, Account& account) const {
    Forward made;
    for (const ValueId id : graph_.regions[region].inputs) {
      made.leaves.push_back(argument(id));
    }
    const Charge charge(&account, MemoryKind::activation);
    account.reset_peak();
    made.results = functions_[region](made.leaves);
    const Charge uncounted(nullptr, MemoryKind::workspace);
    for (at::Tensor& result : made.results) {
      made.held += static_cast<std::int64_t>(result.nbytes());
      if (result.requires_grad()) {
        made.roots.push_back(result);
        made.gradients.push_back(at::ones_like(result));
      }
      result = result.detach();
    }
    return made;
  }

  // Exact, apart from the workspace of products of bfloat16, which need not be at the worst moment.
  void expect_peak(std::int64_t measured, const Most& planned, std::size_t region) const {
    const std::int64_t workspace = graph_.regions[region].workspace_bytes(kRows);
    EXPECT_EQ(workspace > 0, GetParam() == DType::bfloat16 && region > 0) << "region " << region;
    EXPECT_GE(measured, planned.at(kRows)) << "region " << region;
    EXPECT_LE(measured, planned.at(kRows) + workspace) << "region " << region;
  }

  // As the runtime has them: parameters add to gradients of their own.
  void give_gradients() {
    for (std::size_t i = 0; i < graph_.parameters.size(); ++i) {
      at::Tensor& parameter = model_->parameter(i);
      const DType wide = gradient_dtype(graph_.parameters[i].dtype);
      parameter.mutable_grad() = at::zeros(parameter.sizes(), to_torch(wide));
    }
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
      const Charge charge(account.get(), MemoryKind::activation);
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

TEST_P(MeasuredMemory, OfWhatWaitsForTheWeightsIsExact) {
  const auto account = open_account();
  for (std::size_t i = 0; i < graph_.regions.size(); ++i) {
    Tensors leaves;
    for (const ValueId id : graph_.regions[i].inputs) {
      leaves.push_back(argument(id));
    }
    WeightGradients later;
    {
      const Charge charge(account.get(), MemoryKind::activation);
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

    EXPECT_EQ(account->live(), graph_.regions[i].pending_bytes.at(kRows)) << "region " << i;
    backward_weight(later);
    EXPECT_EQ(account->live(), 0) << "region " << i;
  }
}

TEST_P(MeasuredMemory, OfTheForwardPassIsAtMostTheTransientBytes) {
  const auto account = open_account();
  for (std::size_t i = 0; i < graph_.regions.size(); ++i) {
    Tensors arguments;
    for (const ValueId id : graph_.regions[i].inputs) {
      arguments.push_back(argument(id));
    }
    const Charge charge(account.get(), MemoryKind::activation);
    account->reset_peak();

    const Tensors results = functions_[i](arguments);

    EXPECT_LE(account->peak() - account->live(), graph_.regions[i].transient_bytes.at(kRows))
        << "region " << i;
  }
}

TEST_P(MeasuredMemory, OfAnEvaluationIsExact) {
  const auto account = open_account();
  for (std::size_t i = 0; i < graph_.regions.size(); ++i) {
    Tensors arguments;
    for (const ValueId id : graph_.regions[i].inputs) {
      arguments.push_back(argument(id));
    }
    const at::NoGradGuard no_graph;
    const Charge charge(account.get(), MemoryKind::activation);
    account->reset_peak();

    functions_[i](arguments);

    expect_peak(account->peak(), graph_.regions[i].peaks->evaluate, i);
  }
}

TEST_P(MeasuredMemory, OfABackwardPassIsExact) {
  give_gradients();
  const auto account = open_account();
  for (std::size_t i = 0; i < graph_.regions.size(); ++i) {
    Forward made = forward(i, *account);
    EXPECT_EQ(account->peak(), graph_.regions[i].peaks->forward.at(kRows)) << "region " << i;
    torch::autograd::edge_list edges;
    for (const at::Tensor& root : made.roots) {
      edges.push_back(torch::autograd::impl::gradient_edge(root));
    }
    made.roots.clear();
    {
      const Charge charge(account.get(), MemoryKind::activation);
      account->reset_peak();
      torch::autograd::Engine::get_default_engine().execute(edges, made.gradients, false, false,
                                                            true);
    }

    expect_peak(account->peak() - made.held, graph_.regions[i].peaks->backward, i);
  }
}

TEST_P(MeasuredMemory, OfBothHalvesOfABackwardPassIsExact) {
  give_gradients();
  const auto account = open_account();
  for (std::size_t i = 1; i < graph_.regions.size(); ++i) {  // no gradient leaves the embedding
    Forward made = forward(i, *account);
    WeightGradients later;
    const Charge charge(account.get(), MemoryKind::activation);
    account->reset_peak();
    backward_input(made.roots, made.gradients, {made.leaves[0]}, later);
    expect_peak(account->peak() - made.held, graph_.regions[i].peaks->backward_input, i);
    made.roots.clear();
    std::int64_t arrived = 0;  // not counted, but among what is pending
    for (const ValueId id : graph_.regions[i].pending_gradients) {
      arrived += graph_.value(id).bytes().at(kRows);
    }
    account->reset_peak();

    backward_weight(later);

    expect_peak(account->peak() - made.held + arrived, graph_.regions[i].peaks->backward_weight, i);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MeasuredMemory,
                         testing::Values(DType::float32, DType::float64, DType::bfloat16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace piper
