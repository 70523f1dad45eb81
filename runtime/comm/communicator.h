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
constexpr std::size_t width(Element element) {  // bytes
  return element == Element::float32 ? sizeof(float) : sizeof(double);
}

// What members add up. They compare the tag, which says what it is.
struct Reduction {
  std::uint64_t tag = 0;
  Element element = Element::float32;
  void* data = nullptr;
  std::size_t count = 0;
};

// Something whole on every member, of which each wants the sum of one of `size()` equal parts:
// member i of the i-th. The sum is added to what `part` holds.
struct Scatter {
  std::uint64_t tag = 0;
  Element element = Element::float32;
  const void* whole = nullptr;
  std::size_t count = 0;  // elements of the whole; a multiple of size()
  void* part = nullptr;
};

// A part of equal size on every member, which all of them want one after the other in `whole`. A
// member's own part may already lie in its place there.
struct Gather {
  std::uint64_t tag = 0;
  const void* part = nullptr;
  std::size_t bytes = 0;  // of a part
  void* whole = nullptr;
};

// One group of ranks. Its operations throw CommunicationError or Cancelled, need one thread a
// member, and return the bytes that the member moved between itself and the others. Sums are added
// in the order of the members, so all get the same bits.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual std::uint32_t size() const = 0;

  // Replaces every member's elements by their sum.
  virtual std::size_t all_reduce(std::uint32_t member, const Reduction& reduction) = 0;
  virtual std::size_t reduce_scatter(std::uint32_t member, const Scatter& scatter) = 0;
  virtual std::size_t all_gather(std::uint32_t member, const Gather& gather) = 0;
};

}  // namespace piper
