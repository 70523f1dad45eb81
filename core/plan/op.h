// The operations of a plan, and what is true of each: the one table of them. Who prints, paints,
// prices or names a task looks here. What an operation reads and writes is in accesses.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace piper {

enum class Op : std::uint8_t {
  // Chunks.
  forward,
  backward,         // B
  backward_input,   // BI
  backward_weight,  // BW
  recompute,
  update,
  // Communication.
  send,
  recv,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  // Scalars: small collectives whose result every member needs.
  token_count,  // valid labels of the global batch
  grad_norm,    // global 2-norm of the reduced gradients, and whether it is finite
  loss_report,  // sum of token losses / token count, of the global batch
  // State that is not a parameter. Lowering makes none so far.
  statistic,
  state_update,
  // What the data loader delivers.
  input,
};

// What says which of its kind a task is.
enum class Address : std::uint8_t {
  chunk,    // a chunk and a micro-batch
  message,  // a value and a micro-batch; of a gradient, the chunk that computes it as well
  route,    // a chunk of experts, a micro-batch, and which of the four all-to-alls around it
  bucket,
  chain,    // a bucket, and which chain of its uses
  program,  // nothing more: a program has one
};

enum class Work : std::uint8_t { compute, communicate, load };

// Which way data goes, seen from the rank.
enum class Direction : std::uint8_t { none, out, in, both };

// What a task takes as long as.
enum class Cost : std::uint8_t {
  forward,         // a pass over the chunk
  backward,        // both halves of one
  backward_input,  // a half
  backward_weight,
  update,   // of the optimizer, over the rank's shard of the bucket
  message,  // what it moves, over a link
  ring,     // what it moves, `rounds` times round its group
  fixed,    // its units
};

// What a communication moves.
enum class Moves : std::uint8_t {
  nothing,
  value,       // one, or its gradient
  parameters,  // of the bucket
  gradients,   // of the bucket
  shard,       // of the bucket's gradients, what the rank keeps
  routed,      // rows of all the values on one side of the experts
  scalar,
};

// What is drawn alike.
enum class Paint : std::uint8_t {
  forward,
  recompute,
  backward,
  backward_weight,
  update,
  message,
  reduction,
  gather,
  routing,
  scalar,
  input,
};
inline constexpr std::size_t kPaints = static_cast<std::size_t>(Paint::input) + 1;

struct OpTraits {
  Op op;
  std::string_view name;        // in plans, graphs and JSON
  std::string_view short_name;  // in names of tasks: 1F3@0
  std::string_view legend;      // under pictures
  Address address;
  Work work;
  Direction direction;
  Cost cost;
  std::uint16_t units;  // under the unit model, where a forward takes 1000
  Moves moves;
  std::uint8_t rounds;  // of Cost::ring
  Paint paint;
  std::string_view directive;  // that asks for it; "lowering": none
  // How to say that it starts no earlier than a computation of which it needs nothing; "": it is
  // never put off.
  std::string_view put_off;
};

// clang-format off
inline constexpr OpTraits kOpTraits[] = {
  {Op::forward,         "forward",         "F",  "F forward",            Address::chunk,
   Work::compute,     Direction::none, Cost::forward,         1000, Moves::nothing,    0,
   Paint::forward,         "place",     ""},
  {Op::backward,        "backward",        "B",  "B backward",           Address::chunk,
   Work::compute,     Direction::none, Cost::backward,        2000, Moves::nothing,    0,
   Paint::backward,        "place",     ""},
  {Op::backward_input,  "backward_input",  "BI", "BI backward, inputs",  Address::chunk,
   Work::compute,     Direction::none, Cost::backward_input,  1000, Moves::nothing,    0,
   Paint::backward,        "place",     ""},
  {Op::backward_weight, "backward_weight", "BW", "BW backward, weights", Address::chunk,
   Work::compute,     Direction::none, Cost::backward_weight, 1000, Moves::nothing,    0,
   Paint::backward_weight, "place",     ""},
  {Op::recompute,       "recompute",       "R",  "R recomputed forward", Address::chunk,
   Work::compute,     Direction::none, Cost::forward,         1000, Moves::nothing,    0,
   Paint::recompute,       "place",     ""},
  {Op::update,          "update",          "U",  "update",               Address::bucket,
   Work::compute,     Direction::none, Cost::update,           100, Moves::nothing,    0,
   Paint::update,          "replicate", ""},
  {Op::send,            "send",            "",   "send",                 Address::message,
   Work::communicate, Direction::out,  Cost::message,           50, Moves::value,      0,
   Paint::message,         "place",     ""},
  {Op::recv,            "recv",            "",   "receive",              Address::message,
   Work::communicate, Direction::in,   Cost::message,           50, Moves::value,      0,
   Paint::message,         "place",     "posted"},
  {Op::all_reduce,      "all_reduce",      "",   "all-reduce",           Address::bucket,
   Work::communicate, Direction::both, Cost::ring,              50, Moves::shard,      2,
   Paint::reduction,       "replicate", ""},
  {Op::reduce_scatter,  "reduce_scatter",  "",   "reduce-scatter",       Address::chain,
   Work::communicate, Direction::both, Cost::ring,              50, Moves::gradients,  1,
   Paint::reduction,       "replicate", ""},
  {Op::all_gather,      "all_gather",      "",   "all-gather",           Address::chain,
   Work::communicate, Direction::both, Cost::ring,              50, Moves::parameters, 1,
   Paint::gather,          "replicate", "gathered"},
  {Op::all_to_all,      "all_to_all",      "",   "all-to-all",           Address::route,
   Work::communicate, Direction::both, Cost::ring,              50, Moves::routed,     1,
   Paint::routing,         "shard",     ""},
  {Op::token_count,     "token_count",     "",   "token count",          Address::program,
   Work::communicate, Direction::both, Cost::ring,              10, Moves::scalar,     2,
   Paint::scalar,          "lowering",  ""},
  {Op::grad_norm,       "grad_norm",       "",   "gradient norm",        Address::program,
   Work::communicate, Direction::both, Cost::ring,              10, Moves::scalar,     2,
   Paint::scalar,          "lowering",  ""},
  {Op::loss_report,     "loss_report",     "",   "loss report",          Address::program,
   Work::communicate, Direction::both, Cost::ring,              10, Moves::scalar,     2,
   Paint::scalar,          "lowering",  ""},
  {Op::statistic,       "statistic",       "",   "statistic",            Address::program,
   Work::communicate, Direction::both, Cost::ring,              10, Moves::scalar,     2,
   Paint::scalar,          "lowering",  ""},
  {Op::state_update,    "state_update",    "",   "state update",         Address::program,
   Work::compute,     Direction::none, Cost::fixed,             10, Moves::nothing,    0,
   Paint::update,          "lowering",  ""},
  {Op::input,           "input",           "",   "input",                Address::program,
   Work::load,        Direction::none, Cost::fixed,             10, Moves::nothing,    0,
   Paint::input,           "lowering",  ""},
};
// clang-format on
inline constexpr std::size_t kOps = static_cast<std::size_t>(Op::input) + 1;
static_assert(std::size(kOpTraits) == kOps);
static_assert([] {
  for (std::size_t op = 0; op < kOps; ++op) {
    if (static_cast<std::size_t>(kOpTraits[op].op) != op) {
      return false;
    }
  }
  return true;
}());

constexpr const OpTraits& traits(Op op) {
  return kOpTraits[static_cast<std::size_t>(op)];
}
constexpr std::string_view to_string(Op op) {
  return traits(op).name;
}
// "F", "B", "BI", "BW", "R", "U"; the operation's own name for others.
constexpr std::string_view short_name(Op op) {
  return traits(op).short_name.empty() ? traits(op).name : traits(op).short_name;
}
constexpr bool computes(Op op) {
  return traits(op).work == Work::compute;
}
constexpr bool is_communication(Op op) {
  return traits(op).work == Work::communicate;
}
constexpr bool is_point_to_point(Op op) {
  return traits(op).address == Address::message;
}
// A pass over a chunk: forward, recomputation, a backward or a half of one.
constexpr bool runs_chunk(Op op) {
  return traits(op).address == Address::chunk;
}
constexpr bool has_microbatch(Op op) {
  const Address address = traits(op).address;
  return address == Address::chunk || address == Address::message || address == Address::route;
}
constexpr bool is_routing(Op op) {
  return traits(op).address == Address::route;
}
constexpr bool counts_chains(Op op) {
  return traits(op).address == Address::chain;
}

}  // namespace piper
