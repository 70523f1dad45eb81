#include "runtime/comm/local/channel.h"

#include <cstring>
#include <string>

namespace piper {

LocalChannel::LocalChannel(Cancellation& cancellation, std::uint32_t from, std::uint32_t to)
    : cancellation_(cancellation), from_(from), to_(to) {
  cancellation.attach(*this);
}

void LocalChannel::wake() noexcept {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void LocalChannel::transfer(bool sends, const Message& message) {
  std::unique_lock lock(mutex_);
  cancellation_.throw_if_requested();
  if (state_ == State::posted && posted_sends_ != sends) {
    check(sends, message);
    const Message other = posted_;
    state_ = State::copying;
    lock.unlock();
    const Message& to = sends ? other : message;
    const Message& from = sends ? message : other;
    if (from.bytes() > 0) {
      std::memcpy(to.data, from.data, from.bytes());
    }
    lock.lock();
    state_ = State::empty;
    ++completed_;
    lock.unlock();
    changed_.notify_all();
    return;
  }
  // An end has one thread, so nobody of this end is here, and the other end waits for none of it.
  posted_ = message;
  posted_sends_ = sends;
  state_ = State::posted;
  const std::uint64_t before = completed_;
  changed_.wait(lock, [&] {
    return completed_ != before || (state_ == State::posted && cancellation_.requested());
  });
  if (completed_ == before) {
    state_ = State::empty;
    throw Cancelled();
  }
}

void LocalChannel::check(bool sends, const Message& message) const {
  const Message& send = sends ? message : posted_;
  const Message& recv = sends ? posted_ : message;
  const bool same_type = send.dtype == recv.dtype;
  if (send.self == recv.peer && send.peer == recv.self && same_type && send.count == recv.count) {
    return;
  }
  const auto text = [&](const Message& end) {
    return "node " + std::to_string(end.self) + " (expects node " + std::to_string(end.peer) +
           ", " + std::to_string(end.bytes()) + " bytes" +
           (same_type ? "" : " of " + std::string(to_string(end.dtype))) + ')';
  };
  throw CommunicationError("rank " + std::to_string(from_) + " sends to rank " +
                           std::to_string(to_) + ", but the ends differ: send " + text(send) +
                           " met receive " + text(recv));
}

}  // namespace piper
