// Collectives between threads of one process, in place and without a buffer of their own: each
// member adds up one slice of everybody's elements and writes it back to everybody.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/device/cancellation.h"

namespace piper {

class LocalCollective final : public Collective, public Sleeper {
 public:
  // `ranks`: world ranks of the members.
  LocalCollective(Cancellation& cancellation, std::vector<std::uint32_t> ranks);

  std::uint32_t size() const override { return static_cast<std::uint32_t>(ranks_.size()); }
  void all_reduce(std::uint32_t member, const Reduction& reduction) override;
  void wake() noexcept override;

 private:
  // Returns when all members have come. A cancellation ends a gathering that is not complete.
  void gather();
  // The same, where all members are sure to come.
  void part();
  std::string compare() const;

  const Cancellation& cancellation_;
  const std::vector<std::uint32_t> ranks_;
  std::vector<Reduction> posted_;  // by member; stable between gather() and part()
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t arrived_ = 0;
  std::uint64_t round_ = 0;
  std::string difference_;  // between members; "" = none
};

}  // namespace piper
