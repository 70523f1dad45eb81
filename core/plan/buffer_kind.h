// What a plan's buffers hold, and what is true of each kind: the one table of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace piper {

enum class BufferKind : std::uint8_t {
  input,       // from the data loader
  activation,  // the output of a forward, or its received copy
  // The gradient of a value that consumer `chunk` computes, or its received copy. A chunk's input
  // wants one exactly when such a buffer is among its backward's writes.
  gradient,
  saved,               // the autograd graph between forward and backward
  parameter,           // kept between steps; with ZeRO 3, the rank's shard
  parameter_gradient,  // accumulates over micro-batches, zeroed by the update; the rank's shard
  optimizer,           // moments and master weights
  loss_sum,            // of token losses of this rank's micro-batches; zeroed by loss_report
  token_count,
  grad_norm,
  gathered,         // the whole parameter while a chain uses it
  full_gradient,    // the whole gradient until a chain's is reduced
  routed,           // an activation as experts see it: before `chunk`, or (none) after its makers
  routed_gradient,  // a gradient as experts see it
};

// What says which of its kind a buffer is, and how long it lives.
enum class Holds : std::uint8_t {
  value,    // a value, a micro-batch
  use,      // a value, a micro-batch and the chunk that uses it
  chunk,    // a chunk, a micro-batch
  chain,    // a bucket, and which chain of its uses (in `microbatch`)
  bucket,   // a bucket; lives as long as the job
  program,  // a program has one, as long as the job
};

struct BufferTraits {
  BufferKind kind;
  std::string_view name;
  Holds holds;
};

inline constexpr BufferTraits kBufferTraits[] = {
    {BufferKind::input, "input", Holds::value},
    {BufferKind::activation, "activation", Holds::value},
    {BufferKind::gradient, "gradient", Holds::use},
    {BufferKind::saved, "saved", Holds::chunk},
    {BufferKind::parameter, "parameter", Holds::bucket},
    {BufferKind::parameter_gradient, "parameter_gradient", Holds::bucket},
    {BufferKind::optimizer, "optimizer", Holds::bucket},
    {BufferKind::loss_sum, "loss_sum", Holds::program},
    {BufferKind::token_count, "token_count", Holds::program},
    {BufferKind::grad_norm, "grad_norm", Holds::program},
    {BufferKind::gathered, "gathered", Holds::chain},
    {BufferKind::full_gradient, "full_gradient", Holds::chain},
    {BufferKind::routed, "routed", Holds::use},
    {BufferKind::routed_gradient, "routed_gradient", Holds::use},
};
inline constexpr std::size_t kBufferKinds =
    static_cast<std::size_t>(BufferKind::routed_gradient) + 1;
static_assert(std::size(kBufferTraits) == kBufferKinds);
static_assert([] {
  for (std::size_t kind = 0; kind < kBufferKinds; ++kind) {
    if (static_cast<std::size_t>(kBufferTraits[kind].kind) != kind) {
      return false;
    }
  }
  return true;
}());

constexpr std::string_view to_string(BufferKind kind) {
  return kBufferTraits[static_cast<std::size_t>(kind)].name;
}
constexpr Holds held_by(BufferKind kind) {
  return kBufferTraits[static_cast<std::size_t>(kind)].holds;
}
constexpr bool has_microbatch(BufferKind kind) {
  const Holds holds = held_by(kind);
  return holds == Holds::value || holds == Holds::use || holds == Holds::chunk;
}
constexpr bool holds_chain(BufferKind kind) {
  return held_by(kind) == Holds::chain;
}
constexpr bool lives_as_long_as_the_job(BufferKind kind) {
  return held_by(kind) == Holds::bucket || held_by(kind) == Holds::program;
}
constexpr bool is_routed(BufferKind kind) {
  return kind == BufferKind::routed || kind == BufferKind::routed_gradient;
}

}  // namespace piper
