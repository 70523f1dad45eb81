// The compute order of a plan, a line a place, in the notation of schedule tables:
//     0F0,0F1,0B0,0B1            F, B, I and W of stage s and micro-batch m: sFm
//     1F0,1I0,1W0,...            (0F3;3B1)OVERLAP_F_B: an overlapped pair
// It is the format of PyTorch's and TorchTitan's schedule files; plugin schedule_file reads it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/pipeline.h"

namespace piper {

// How chains wrote what the plan orders: which backwards are whole, although the stage's are split,
// and what overlaps. Give its `see` to `plan` as a Trace.
class OrderNotation {
 public:
  void see(const Phase& phase);

  // Of a stage and micro-batch on the place with this lowest rank.
  struct Backward {
    bool whole = false;
    std::uint32_t overlap = 0;  // as Action::overlap
  };
  Backward backward(std::uint32_t rank, std::uint32_t stage, std::uint32_t microbatch) const;
  std::uint32_t forward_overlap(std::uint32_t rank, std::uint32_t stage,
                                std::uint32_t microbatch) const;

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // rank, stage, micro-batch
  std::map<Key, Backward> backwards_;
  std::map<Key, std::uint32_t> forwards_;
};

// Lines by lowest rank; `program`: only that one. Without tag PP everything is stage 0. Error
// cli.usage: a computation without tag PP beside others that have it.
Expected<std::string> csv(const Plan& plan, const ModelGraph& model, const OrderNotation& notation,
                          std::optional<std::uint32_t> program = std::nullopt);

}  // namespace piper
