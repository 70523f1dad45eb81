// Collectives between threads of one process, without a buffer of their own: members read each
// other's memory. In an all-reduce each adds up one slice of everybody's elements and writes it
// back to everybody.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/device/cancellation.h"

namespace piper {

class LocalGroup final : public Sleeper {
 public:
  // `ranks`: of the members.
  LocalGroup(Cancellation& cancellation, std::vector<std::uint32_t> ranks);

  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  // As Collective's. One thread a member.
  std::size_t all_reduce(std::uint32_t member, const Reduction& reduction);
  std::size_t reduce_scatter(std::uint32_t member, const Scatter& scatter);
  std::size_t all_gather(std::uint32_t member, const Gather& gather);
  void wake() noexcept override;

  // What a member has come with.
  enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather };
  struct Posted {
    Kind kind = Kind::all_reduce;
    std::uint64_t tag = 0;
    DType dtype = DType::float32;
    std::size_t count = 0;  // elements
    void* data = nullptr;   // that the others read; all_reduce: and write
  };

 private:
  // Waits for all members, and checks that they mean the same.
  void meet(std::uint32_t member, const Posted& posted);
  // Returns when all members have come. A cancellation ends an assembly that is not complete.
  void assemble();
  // The same, where all members are sure to come.
  void part();
  std::string compare() const;

  const Cancellation& cancellation_;
  const std::vector<std::uint32_t> ranks_;
  std::vector<Posted> posted_;  // by member; stable between meet() and part()
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t arrived_ = 0;
  std::uint64_t round_ = 0;
  std::string difference_;  // between members; "" = none
};

// One member.
class LocalCollective final : public Collective {
 public:
  LocalCollective(std::shared_ptr<LocalGroup> group, std::uint32_t member)
      : group_(std::move(group)), member_(member) {}

  std::uint32_t size() const override { return group_->size(); }
  std::size_t all_reduce(const Launch&, const Reduction& reduction) override {
    return group_->all_reduce(member_, reduction);
  }
  std::size_t reduce_scatter(const Launch&, const Scatter& scatter) override {
    return group_->reduce_scatter(member_, scatter);
  }
  std::size_t all_gather(const Launch&, const Gather& gather) override {
    return group_->all_gather(member_, gather);
  }

 private:
  std::shared_ptr<LocalGroup> group_;
  std::uint32_t member_;
};

}  // namespace piper
