// Point-to-point between threads of one process: whoever comes second copies.
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

// One directed pair of ranks.
class LocalChannel final : public Sleeper {
 public:
  LocalChannel(Cancellation& cancellation, std::uint32_t from, std::uint32_t to);

  void send(const Message& message) { transfer(true, message); }
  void recv(const Message& message) { transfer(false, message); }
  void wake() noexcept override;

 private:
  enum class State : std::uint8_t { empty, posted, copying };

  void transfer(bool sends, const Message& message);
  void check(bool sends, const Message& message) const;

  const Cancellation& cancellation_;
  const std::uint32_t from_, to_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::empty;
  bool posted_sends_ = false;  // of the end that came first
  Message posted_;
  std::uint64_t completed_ = 0;
};

class LocalPointToPoint final : public PointToPoint {
 public:
  // A pair of world ranks a member.
  LocalPointToPoint(Cancellation& cancellation,
                    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& members);

  void send(std::uint32_t member, const Message& message) override {
    channels_[member]->send(message);
  }
  void recv(std::uint32_t member, const Message& message) override {
    channels_[member]->recv(message);
  }

 private:
  std::vector<std::unique_ptr<LocalChannel>> channels_;
};

}  // namespace piper
