#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/memory/account.h"

namespace piper {
namespace {

class AccountTest : public testing::Test {
 protected:
  AccountTest() { install_counting_allocator(); }
  std::shared_ptr<Account> account = open_account();
};

TEST_F(AccountTest, ChargesWhatAThreadAllocatesInItsScope) {
  at::Tensor before = at::empty({1000}, at::kFloat);
  {
    const Charge charge(account.get(), MemoryKind::parameter);
    at::Tensor inside = at::empty({1000}, at::kFloat);
    const Charge nested(MemoryKind::gradient);
    at::Tensor deeper = at::empty({10}, at::kDouble);

    EXPECT_EQ(account->live(), 4080);
    EXPECT_EQ(account->live(MemoryKind::parameter), 4000);
    EXPECT_EQ(account->live(MemoryKind::gradient), 80);
  }
  at::Tensor after = at::empty({1000}, at::kFloat);

  EXPECT_EQ(account->live(), 0);
  EXPECT_EQ(account->peak(), 4080);
}

TEST_F(AccountTest, ChargesTheOwnerWhicheverThreadFrees) {
  at::Tensor tensor;
  std::thread([&] {
    charge_thread(account.get(), MemoryKind::activation);
    tensor = at::empty({256}, at::kFloat);
  }).join();
  const std::int64_t held = account->live(MemoryKind::activation);
  tensor.reset();

  EXPECT_EQ(held, 1024);
  EXPECT_EQ(account->live(), 0);
}

TEST_F(AccountTest, CountsWhatAutogradSaves) {
  at::Tensor x, y;
  {
    const Charge charge(account.get(), MemoryKind::activation);
    x = at::ones({1024}, at::kFloat).set_requires_grad(true);
    y = x.exp().exp();
  }

  EXPECT_GE(account->live(), 3 * 4096) << "x and both results";
  y.reset();
  EXPECT_LE(account->live(), 4096 + 64);
}

TEST_F(AccountTest, SurvivesLibrariesThatAllocateWithoutTensors) {
  const Charge charge(account.get(), MemoryKind::activation);

  const at::Tensor y = at::gelu(at::linear(at::ones({64, 64}), at::ones({64, 64})));

  EXPECT_TRUE(at::isfinite(y).all().item<bool>());
}

TEST_F(AccountTest, AlignsBlocksAsLibTorchExpects) {
  for (const std::int64_t size : {1, 7, 100, 5000}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at::empty({size}, at::kByte).data_ptr()) % 64, 0u);
  }
}

TEST_F(AccountTest, IsUsedAgainOnlyWhenItsBlocksAreGone) {
  Account* const address = account.get();
  at::Tensor tensor;
  {
    const Charge charge(address, MemoryKind::workspace);
    tensor = at::empty({8});
  }
  account.reset();
  const std::shared_ptr<Account> other = open_account();
  EXPECT_NE(other.get(), address);

  tensor.reset();
  const std::shared_ptr<Account> again = open_account();
  EXPECT_EQ(again.get(), address);
  EXPECT_EQ(again->peak(), 0);
}

}  // namespace
}  // namespace piper
