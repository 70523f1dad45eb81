// How ranks exchange tensors. A communicator is one rank's view of it. Every communicator exists
// before the first step; members call it in the same order, which the plan has fixed, each on the
// host thread of the stream that the launch names. The work is done, and what it reads and writes
// may change, when an event that the stream records later has come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/base/dtype.h"

namespace piper {

struct Launch;

// Members do not mean the same transfer: a mistake in the plan.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One end of a transfer. `self` and `peer` are nodes of the plan: both ends compare them.
struct Message {
  std::uint32_t self = 0, peer = 0;
  DType dtype = DType::float32;
  void* data = nullptr;   // a send only reads it
  std::size_t count = 0;  // elements

  std::size_t bytes() const { return count * size_of(dtype); }
};

// One end of a directed pair of ranks: all its messages go one way, without a buffer between.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;

  // Throw CommunicationError or Cancelled.
  virtual void send(const Launch& launch, const Message& message) = 0;
  virtual void recv(const Launch& launch, const Message& message) = 0;
};

// What members add up. They compare the tag, which says what it is.
struct Reduction {
  std::uint64_t tag = 0;
  DType dtype = DType::float32;  // float32, float64 or int64
  void* data = nullptr;
  std::size_t count = 0;
};

// Something whole on every member, of which each wants the sum of one of `size()` equal parts:
// member i of the i-th. The sum is added to what `part` holds.
struct Scatter {
  std::uint64_t tag = 0;
  DType dtype = DType::float32;  // as of a reduction
  const void* whole = nullptr;
  std::size_t count = 0;  // elements of the whole; a multiple of size()
  void* part = nullptr;
};

// A part of equal size on every member, which all of them want one after the other in `whole`. A
// member's own part may already lie in its place there.
struct Gather {
  std::uint64_t tag = 0;
  DType dtype = DType::float32;  // any
  const void* part = nullptr;
  std::size_t count = 0;  // elements of a part
  void* whole = nullptr;
};

// A member of one group of ranks. Its operations throw CommunicationError or Cancelled, and return
// the bytes that the member will have moved between itself and the others. Sums are added in the
// order of the members, so all get the same bits.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual std::uint32_t size() const = 0;

  // Replaces every member's elements by their sum.
  virtual std::size_t all_reduce(const Launch& launch, const Reduction& reduction) = 0;
  virtual std::size_t reduce_scatter(const Launch& launch, const Scatter& scatter) = 0;
  virtual std::size_t all_gather(const Launch& launch, const Gather& gather) = 0;
};

// A communicator of the plan as one rank sees it: one of the two, or, where it is no member, none.
struct Communication {
  std::shared_ptr<PointToPoint> point_to_point;
  std::shared_ptr<Collective> collective;
};
using Communications = std::vector<Communication>;  // by CommId

}  // namespace piper
