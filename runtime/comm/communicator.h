// How ranks exchange bytes. Every communicator exists before the first step; members call it in the
// same order, which the plan has fixed, and block until their part is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace piper {

// Members do not mean the same transfer: a mistake in the plan.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One end of a transfer. `self` and `peer` are nodes of the plan: both ends compare them.
struct Message {
  std::uint32_t self = 0, peer = 0;
  void* data = nullptr;  // a send only reads it
  std::size_t bytes = 0;
};

// Member i of one group sends to member i of another, without a buffer between: a send returns when
// its bytes have arrived. One thread a member and end.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;

  // Throw CommunicationError or Cancelled.
  virtual void send(std::uint32_t member, const Message& message) = 0;
  virtual void recv(std::uint32_t member, const Message& message) = 0;
};

enum class Element : std::uint8_t { float32, float64 };

struct Reduction {
  std::uint64_t tag = 0;  // what is reduced; members compare it
  Element element = Element::float32;
  void* data = nullptr;
  std::size_t count = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;

  virtual std::uint32_t size() const = 0;

  // Replaces every member's elements by their sum, added in the order of the members: all get the
  // same bits. One thread a member. Throws CommunicationError or Cancelled.
  virtual void all_reduce(std::uint32_t member, const Reduction& reduction) = 0;
};

}  // namespace piper
