// What the kernels of the CPU take inside an operator, beyond its results: listed by operator, and
// small beside what a pass over its region holds.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "runtime/memory/account.h"
#include "runtime/model/kernel_workspace.h"
#include "runtime/model/operation_mode.h"
#include "runtime/models/find_model.h"
#include "tests/runtime/models/running_model.h"

namespace piper {
namespace {

// By operator: the most that one call took and gave back.
class Workspace final : public OperationObserver {
 public:
  explicit Workspace(Account& account) : account_(account) {}

  void before(const c10::OperatorHandle&, c10::ArrayRef<c10::IValue>) override {
    most_ = std::max(most_, account_.peak());
    before_ = account_.live();
    account_.reset_peak();
  }
  void after(const c10::OperatorHandle& operation, c10::ArrayRef<c10::IValue>,
             c10::ArrayRef<c10::IValue>) override {
    const std::int64_t bytes = account_.peak() - std::max(before_, account_.live());
    if (bytes > 0) {
      std::int64_t& known = by_operator_[operation.operator_name().name];
      known = std::max(known, bytes);
    }
  }

  const std::map<std::string, std::int64_t>& by_operator() const { return by_operator_; }
  std::int64_t most() const { return std::max(most_, account_.peak()); }  // that was live at once

 private:
  Account& account_;
  std::int64_t before_ = 0, most_ = 0;
  std::map<std::string, std::int64_t> by_operator_;
};

// What a product of bfloat16 matrices takes, of which the first may lie column by column.
std::int64_t measured_bytes(Account& account, const RepackedProduct& product) {
  const auto sized = [](const Affine& rows, const Affine& columns) {
    return at::ones({rows.fixed, columns.fixed}, at::kBFloat16);
  };
  const at::Tensor a = product.transposed ? sized(product.inner, product.rows).t()
                                          : sized(product.rows, product.inner);
  const at::Tensor b = sized(product.inner, product.columns);
  const Charge charge(&account, MemoryKind::workspace);
  account.reset_peak();
  const at::Tensor result = at::mm(a, b);
  return account.peak() - account.live();
}

TEST(RepackedProducts, TakeNoMoreThanTheRuleSaysAndMostlyThat) {
  if (__builtin_cpu_supports("avx512bf16") == 0) {
    GTEST_SKIP() << "this processor has other kernels than those that the rule describes";
  }
  install_counting_allocator();
  at::set_num_threads(1);
  const auto account = open_account();
  int all = 0, exact = 0;
  for (const bool transposed : {false, true}) {
    for (const std::int64_t m : {7, 32, 33, 256, 300, 1024}) {
      for (const std::int64_t k : {7, 32, 100, 512, 700, 1025}) {
        for (const std::int64_t n : {7, 64, 65, 257, 1500}) {
          const RepackedProduct product{{0, m}, {0, k}, {0, n}, transposed};
          const std::int64_t measured = measured_bytes(*account, product);
          EXPECT_LE(measured, repacked_bytes(product, 1))
              << m << " by " << k << " by " << n << (transposed ? " transposed" : "");
          exact += measured == repacked_bytes(product, 1) ? 1 : 0;
          ++all;
        }
      }
    }
  }

  EXPECT_GE(exact * 2, all) << exact << " of " << all;
}

class KernelWorkspace : public testing::TestWithParam<DType> {};

TEST_P(KernelWorkspace, IsAtMostATwentiethOfWhatThePassHolds) {
  install_counting_allocator();
  at::set_num_threads(1);
  Config config;
  config.model.flavor = "debug";
  config.training.dtype = GetParam();
  config.training.seq_len = 128;
  LiveModel live = value_of(build_model(config, /*measure=*/false));
  RunningModel model(live);
  for (std::size_t i = 0; i < live.parameters.size(); ++i) {
    const DType wide = gradient_dtype(live.graph.parameters[i].dtype);
    model.parameter(i).mutable_grad() = at::zeros(model.parameter(i).sizes(), to_torch(wide));
  }
  const at::Tensor tokens = at::randint(0, 256, {4, 128}, at::kLong);
  const auto account = open_account();
  Workspace workspace(*account);
  {
    const OperationMode mode(workspace);
    const Charge charge(account.get(), MemoryKind::activation);
    model.loss({{"tokens", tokens}, {"labels", tokens}}).backward();
  }

  std::printf("  %s: %ld bytes at most, of which inside one operator\n",
              std::string(to_string(GetParam())).c_str(), workspace.most());
  for (const auto& [name, bytes] : workspace.by_operator()) {
    std::printf("    %-62s %9ld\n", name.c_str(), bytes);
    EXPECT_LE(bytes * 20, workspace.most()) << name;
  }
  EXPECT_FALSE(workspace.by_operator().empty()) << "attention has some";
}

INSTANTIATE_TEST_SUITE_P(Types, KernelWorkspace,
                         testing::Values(DType::float32, DType::float64, DType::bfloat16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace piper
