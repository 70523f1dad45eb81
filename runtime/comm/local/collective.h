// Collectives between threads of one process, without a buffer of their own: members read each
// other's memory. In an all-reduce each adds up one slice of everybody's elements and writes it
// back to everybody.
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
  std::size_t all_reduce(std::uint32_t member, const Reduction& reduction) override;
  std::size_t reduce_scatter(std::uint32_t member, const Scatter& scatter) override;
  std::size_t all_gather(std::uint32_t member, const Gather& gather) override;
  void wake() noexcept override;

  // What a member has come with.
  enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather };
  struct Posted {
    Kind kind = Kind::all_reduce;
    std::uint64_t tag = 0;
    Element element = Element::float32;  // not of a gather
    std::size_t count = 0;               // elements, or bytes to gather
    void* data = nullptr;                // that the others read; all_reduce: and write
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

}  // namespace piper
