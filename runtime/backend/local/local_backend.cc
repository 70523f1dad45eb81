#include "runtime/backend/local/local_backend.h"

#include <ATen/Parallel.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "runtime/comm/local/connect.h"
#include "runtime/device/cpu/device.h"
#include "runtime/device/sleep.h"

namespace piper {
namespace {

// Threads that launch: one for each stream that has tasks.
std::size_t count_streams(const Plans& plans) {
  std::set<std::pair<std::uint32_t, std::string>> streams;
  for (const Plan* const plan : {&plans.train, &plans.evaluate}) {
    for (const Program& program : plan->programs) {
      for (const Stream& stream : program.streams) {
        for (const std::uint32_t rank : program.ranks) {
          if (stream.tasks.count > 0) {
            streams.emplace(rank, stream.name);
          }
        }
      }
    }
  }
  return streams.size();
}

class LocalBackend final : public Backend {
 public:
  explicit LocalBackend(const Job& job)
      : emulates_(job.config.emulate.computes() || job.config.emulate.delays()),
        connections_(cancellation_, job.config.emulate),
        device_(cancellation_, count_streams(job.plans)) {
    install_counting_allocator();
    const Plans& plans = job.plans;
    const std::uint32_t world =
        plans.train.programs.empty() ? plans.evaluate.world : plans.train.world;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      ranks_.push_back(rank);
      accounts_.push_back(open_account());
    }
  }

  const std::vector<std::uint32_t>& local_ranks() const override { return ranks_; }
  Device& device() override { return device_; }
  const std::shared_ptr<Account>& account(std::size_t local) const override {
    return accounts_[local];
  }
  void enter(std::size_t local) override {
    at::set_num_threads(1);
    if (emulates_) {
      sleep_exactly();
    }
    charge_thread(accounts_[local].get(), MemoryKind::workspace);
  }
  std::vector<Communications> connect(const Plan& plan) override {
    return connections_.connect(plan);
  }
  void bring(std::uint32_t, const void* data, std::uint32_t, void* into,
             std::size_t bytes) override {
    std::memcpy(into, data, bytes);
  }
  Cancellation& cancellation() override { return cancellation_; }

 private:
  Cancellation cancellation_;
  bool emulates_;  // sleeps must be exact
  std::vector<std::uint32_t> ranks_;
  std::vector<std::shared_ptr<Account>> accounts_;
  LocalConnections connections_;
  CpuDevice device_;
};

}  // namespace

std::unique_ptr<Backend> make_local_backend(const Job& job) {
  return std::make_unique<LocalBackend>(job);
}

}  // namespace piper
