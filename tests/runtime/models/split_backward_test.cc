// The halves of the backward of the models that come with Piper give the bits of the whole, with
// embeddings, RMSNorm, rotary positions, attention, dropout and the loss in them.
#include "runtime/autograd/split_backward.h"
#include "runtime/models/find_model.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/runtime/models/running_model.h"

namespace piper {
namespace {

constexpr std::int64_t kRows = 3;

class SplitModel : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    Config config;
    config.model.flavor = "debug";
    config.model.dropout = 0.25;
    config.training.dtype = GetParam();
    config.training.seq_len = 16;
    LiveModel live = value_of(build_model(config, false));
    functions_ = live.regions;
    model_.emplace(std::move(live));
  }

  at::Tensor numbers(at::IntArrayRef sizes, DType dtype) {
    const at::Tensor made = at::empty(sizes, to_torch(dtype));
    return is_floating(dtype) ? made.normal_(0, 1, random_) : made.random_(0, 100, random_);
  }

  // A leaf where the model's value has a gradient.
  Tensors arguments(const Region& region) {
    Tensors made;
    for (const ValueId id : region.inputs) {
      const Value& value = model_->graph().value(id);
      std::vector<std::int64_t> sizes;
      for (const Affine& size : value.shape) {
        sizes.push_back(size.at(kRows));
      }
      made.push_back(numbers(sizes, value.dtype).set_requires_grad(value.needs_gradient()));
    }
    return made;
  }

  // Takes them: the next backward starts from none.
  Tensors take_gradients(const Region& region) {
    Tensors taken;
    for (const ParameterId id : region.parameters) {
      at::Tensor& gradient = model_->parameter(index(id)).mutable_grad();
      taken.push_back(gradient);
      gradient.reset();
    }
    return taken;
  }

  at::Generator random_ = at::detail::createCPUGenerator(7);
  std::vector<RegionFunction> functions_;
  std::optional<RunningModel> model_;
};

TEST_P(SplitModel, GivesTheBitsOfTheWholeInEveryRegion) {
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    const Region& region = model_->graph().regions[i];
    const Tensors in = arguments(region);
    Tensors wanted;
    for (const at::Tensor& argument : in) {
      if (argument.requires_grad()) {
        wanted.push_back(argument);
      }
    }
    Tensors outputs = functions_[i](in);
    const Tensors gradients{numbers(outputs[0].sizes(), GetParam())};
    torch::autograd::backward(outputs, gradients);
    const Tensors whole = take_gradients(region);
    Tensors whole_of_inputs;
    for (const at::Tensor& leaf : wanted) {
      whole_of_inputs.push_back(leaf.grad().clone());
    }
    outputs = functions_[i](in);
    WeightGradients later;

    const Tensors of_inputs = backward_input(outputs, gradients, wanted, later);
    for (const at::Tensor& none : take_gradients(region)) {
      EXPECT_FALSE(none.defined()) << "region " << i << ": BI leaves parameters alone";
    }
    backward_weight(later);

    const Tensors halves = take_gradients(region);
    for (std::size_t p = 0; p < whole.size(); ++p) {
      ASSERT_TRUE(whole[p].defined() && halves[p].defined()) << "region " << i << " " << p;
      EXPECT_TRUE(at::equal(halves[p], whole[p])) << "region " << i << ", parameter " << p;
    }
    for (std::size_t x = 0; x < wanted.size(); ++x) {
      EXPECT_TRUE(at::equal(of_inputs[x], whole_of_inputs[x])) << "region " << i << ", input " << x;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SplitModel,
                         testing::Values(DType::float32, DType::float64, DType::bfloat16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace piper
