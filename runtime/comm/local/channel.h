// Point-to-point between threads of one process: whoever comes second copies.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/comm/communicator.h"
#include "runtime/device/cancellation.h"

namespace piper {

// One directed pair of ranks. One thread an end.
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

// An end of it.
class LocalPointToPoint final : public PointToPoint {
 public:
  explicit LocalPointToPoint(std::shared_ptr<LocalChannel> channel)
      : channel_(std::move(channel)) {}

  void send(const Launch&, const Message& message) override { channel_->send(message); }
  void recv(const Launch&, const Message& message) override { channel_->recv(message); }

 private:
  std::shared_ptr<LocalChannel> channel_;
};

}  // namespace piper
