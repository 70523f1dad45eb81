// Operators that LibTorch has no shape rule for give on the meta device what they give on the CPU,
// and stay inside the memory of the zeros that they are run on.
#include "runtime/model/run_on_zeros.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/model/build.h"
#include "runtime/model/meta_kernels.h"
#include "tests/support/guarded_allocator.h"

namespace piper {
namespace {

using at::Tensor;

struct Layout {
  const char* name;
  std::function<Tensor(const at::TensorOptions&)> make;
};

const std::vector<Layout>& layouts() {
  using Options = at::TensorOptions;
  static const std::vector<Layout> all{
      {"contiguous",
       [](const Options& o) {
         return at::zeros({6, 4}, o);
       }},
      {"transposed",
       [](const Options& o) {
         return at::zeros({4, 6}, o).t();
       }},
      {"every other",
       [](const Options& o) {
         return at::zeros({6, 8}, o).slice(1, 0, 8, 2);
       }},
      {"one row",
       [](const Options& o) {
         return at::zeros({1, 4}, o).expand({6, 4});
       }},
      {"one column",
       [](const Options& o) {
         return at::zeros({6, 1}, o).expand({6, 4});
       }},
      {"one element",
       [](const Options& o) {
         return at::zeros({}, o).expand({6, 4});
       }},
      {"overlapping",
       [](const Options& o) {
         return at::zeros({14}, o).as_strided({6, 4}, {2, 1});
       }},
      {"every row, transposed",
       [](const Options& o) {
         return at::zeros({4, 1}, o).t().expand({6, 4});
       }},
      {"no row",
       [](const Options& o) {
         return at::zeros({0, 4}, o);
       }},
      {"no column",
       [](const Options& o) {
         return at::zeros({6, 0}, o);
       }},
  };
  return all;
}

struct Operator {
  const char* name;
  std::function<Tensors(const Tensor&)> run;
};

Tensors all(std::tuple<Tensor, Tensor> both) {
  return {std::get<0>(both), std::get<1>(both)};
}
Tensors all(std::tuple<Tensor, Tensor, Tensor> three) {
  return {std::get<0>(three), std::get<1>(three), std::get<2>(three)};
}

// LibTorch's kernel divides by the number of elements: of none it ends the process, on any device.
const Tensor& filled(const Tensor& x) {
  TORCH_CHECK(x.numel() > 0, "empty");
  return x;
}

const std::vector<Operator>& operators() {
  static const std::vector<Operator> all_of_them{
      {"flip", [](const Tensor& x) { return Tensors{x.flip(1)}; }},
      {"roll", [](const Tensor& x) { return Tensors{x.roll(1, 0)}; }},
      {"isnan", [](const Tensor& x) { return Tensors{x.isnan()}; }},
      {"hardtanh", [](const Tensor& x) { return Tensors{at::hardtanh(x)}; }},
      {"log_sigmoid", [](const Tensor& x) { return Tensors{at::log_sigmoid(x)}; }},
      {"std_mean", [](const Tensor& x) { return all(at::std_mean(x, 1, true)); }},
      {"prod", [](const Tensor& x) { return Tensors{x.prod()}; }},
      {"trace", [](const Tensor& x) { return Tensors{x.trace()}; }},
      {"dot", [](const Tensor& x) { return Tensors{x.select(1, 0).dot(x.select(1, 0))}; }},
      {"take", [](const Tensor& x) { return Tensors{x.take(x.to(at::kLong))}; }},
      {"floor_divide", [](const Tensor& x) { return Tensors{x.floor_divide(x.select(0, 0))}; }},
      {"addbmm",
       [](const Tensor& x) { return Tensors{at::addbmm(x, x.unsqueeze(2), x.unsqueeze(1))}; }},
      {"cummax", [](const Tensor& x) { return all(x.cummax(0)); }},
      {"weight_norm",
       [](const Tensor& x) { return Tensors{at::_weight_norm(filled(x), x.narrow(1, 0, 1), 0)}; }},
      {"weight_norm last",
       [](const Tensor& x) { return Tensors{at::_weight_norm(filled(x), x.narrow(0, 0, 1), 1)}; }},
      {"weight_norm backward",
       [](const Tensor& x) {
         const Tensor v = filled(x).contiguous(), g = v.narrow(1, 0, 1).contiguous();
         return all(at::_weight_norm_interface_backward(v, v, g, g, 0));
       }},
      // With rules of their own.
      {"relu", [](const Tensor& x) { return Tensors{x.relu()}; }},
      {"max", [](const Tensor& x) { return Tensors{x.max()}; }},
      {"min", [](const Tensor& x) { return Tensors{x.min()}; }},
      {"std",
       [](const Tensor& x) {
         return Tensors{x.std(0), x.std(1, false, true), x.std()};
       }},
      {"var",
       [](const Tensor& x) {
         return Tensors{x.var(at::IntArrayRef{0, 1}, true)};
       }},
      {"mse_loss backward",
       [](const Tensor& x) {
         return Tensors{at::mse_loss_backward(x, x, x, at::Reduction::None)};
       }},
      {"dropout backward",
       [](const Tensor& x) { return Tensors{at::native_dropout_backward(x, x > 0, 2.0)}; }},
      {"layer_norm backward",
       [](const Tensor& x) {
         const Tensor mean = at::zeros({x.size(0), 1}, x.options());
         const Tensor weight = at::zeros({x.size(1)}, x.options());
         return all(at::native_layer_norm_backward(x, x, {x.size(1)}, mean, mean, weight, weight,
                                                   {true, true, true}));
       }},
      {"conv1d",
       [](const Tensor& x) {
         const Tensor kernel = at::zeros({5, 4, 3}, x.options());
         return Tensors{at::conv1d(x.unsqueeze(2).expand({-1, -1, 9}), kernel, {}, 2, 1),
                        at::conv_transpose1d(x.unsqueeze(2), kernel.transpose(0, 1), {}, 2, 1)};
       }},
  };
  return all_of_them;
}

// Sizes and strides of the results, or that there are none.
std::string run(const Operator& op, const Layout& layout, c10::DeviceType device) {
  try {
    std::string text;
    for (const Tensor& result : op.run(layout.make(at::TensorOptions(device)))) {
      EXPECT_EQ(result.device().type(), device) << op.name;
      text +=
          c10::str(result.scalar_type(), ' ', result.sizes(), " strides ", result.strides(), '\n');
    }
    return text;
  } catch (const c10::Error&) {
    return "refused";
  }
}

TEST(RunOnZeros, GivesWhatTheCpuGivesForEveryLayoutOfItsInputs) {
  install_meta_kernels();
  const test::GuardedTensors guarded;

  int compared = 0;
  for (const Operator& op : operators()) {
    for (const Layout& layout : layouts()) {
      const std::string expected = run(op, layout, c10::kCPU);
      EXPECT_EQ(run(op, layout, c10::kMeta), expected) << op.name << " of " << layout.name;
      compared += expected == "refused" ? 0 : 1;
    }
  }
  EXPECT_GT(compared, 150) << "most are not refused";
}

// Below _weight_norm, which makes its inputs contiguous, is a kernel that reads and writes as many
// elements as the sizes say, also of a result in the strides of an expanded tensor.
TEST(RunOnZeros, LeavesRoomForAKernelThatTakesAnExpandedTensorForAContiguousOne) {
  install_meta_kernels();
  const test::GuardedTensors guarded;
  const auto meta = at::TensorOptions(at::kMeta);
  const Tensor v = at::empty({1, 1}, meta).expand({300, 500});
  const Tensor g = at::empty({1, 1}, meta).expand({300, 1});

  const auto [w, norms] = at::_weight_norm_interface(v, g, 0);

  EXPECT_EQ(w.sizes(), v.sizes());
  EXPECT_EQ(norms.sizes(), g.sizes());
}

TEST(RunOnZeros, MakesOnTheMetaDeviceWhatHasNoTensorAmongItsArguments) {
  install_meta_kernels();

  const Tensor indices = at::tril_indices(3, 3, 0, at::TensorOptions(at::kMeta));

  EXPECT_TRUE(indices.is_meta());
  EXPECT_EQ(indices.sizes(), (at::IntArrayRef{2, 6}));
}

TEST(RunOnZeros, RefusesMoreThanItsShareOfMemoryAndNamesTheOperator) {
  install_meta_kernels();
  const auto bools = [](std::int64_t count) {
    return at::empty({count}, at::TensorOptions(at::kMeta).dtype(at::kBool));
  };

  EXPECT_EQ(bools(kMostZeros).flip(0).numel(), kMostZeros);
  try {
    bools(kMostZeros + 1).flip(0);
    FAIL() << "expected a refusal";
  } catch (const TooManyZeros& refused) {
    EXPECT_NE(std::string(refused.what()).find("aten::flip"), std::string::npos) << refused.what();
    EXPECT_NE(std::string(refused.what()).find("256.0 MiB"), std::string::npos) << refused.what();
  }
  // What is expanded counts whole, and all inputs together.
  const Tensor half = bools(1).expand({kMostZeros / 2 + 1});
  EXPECT_THROW(at::dot(half, half), TooManyZeros);
}

}  // namespace
}  // namespace piper
