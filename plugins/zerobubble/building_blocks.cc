#include "building_blocks.h"

#include <deque>
#include <map>
#include <optional>
#include <stdexcept>

namespace zerobubble {
namespace {

constexpr std::uint64_t kPeriod = 6;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

// The slots of one micro-batch on one rank: forwards and backwards of its first stage, on the way
// down the ranks, and of its second one, on the way back.
struct Block {
  std::uint64_t forward_down, forward_back, backward_back, backward_down;
};

Block v_min_block(std::uint64_t ranks, std::uint64_t rank) {
  const std::uint64_t shift = ranks % 3 == 0 ? 2 : 0;  // or blocks would collide
  return {rank, 2 * ranks - rank - 1, 2 * ranks + shift + rank, 4 * ranks + shift - rank - 1};
}

Block v_half_block(std::uint64_t ranks, std::uint64_t rank) {
  const std::uint64_t shift = ranks % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * ranks - rank - 2, 3 * ranks + shift + 2 * rank - 1,
          6 * ranks + shift - rank - 2};
}

struct Action {
  piper_pass pass;
  bool back;  // of the rank's second stage
  std::uint32_t microbatch;
};
using Slots = std::map<std::uint64_t, Action>;

// The blocks of all micro-batches on one rank; Ws have no slot yet.
Slots repeat_block(const Block& block, std::uint32_t microbatches) {
  Slots slots;
  for (std::uint32_t m = 0; m < microbatches; ++m) {
    slots[kPeriod * m + block.forward_down] = {PIPER_FORWARD, false, m};
    slots[kPeriod * m + block.forward_back] = {PIPER_FORWARD, true, m};
    slots[kPeriod * m + block.backward_back] = {PIPER_BACKWARD_INPUT, true, m};
    slots[kPeriod * m + block.backward_down] = {PIPER_BACKWARD_INPUT, false, m};
  }
  return slots;
}

struct Lanes {
  pipeline::Lane down, back;
  Lanes(const Shape& shape, std::uint32_t rank) : down{rank}, back{2 * shape.ranks - 1 - rank} {}

  void write(Row& row, const Action& action) {
    pipeline::Lane& lane = action.back ? back : down;
    action.pass == PIPER_FORWARD ? row.forward(lane) : row.backward_input(lane);
  }
};

// Runs all ranks together, a slot at a time, each in the order of its blocks, and leaves no slot
// empty that something can fill: where the next action waits for another rank, an I that does not;
// else the next forward, as long as `limit` activations are enough to get to its place in the
// order; else a W.
class Squeeze {
 public:
  Squeeze(const Shape& shape, std::uint32_t limit)
      : shape_(shape),
        limit_(limit),
        forward_end_(shape.stages() * std::size_t{shape.microbatches}, kNever),
        backward_end_(forward_end_) {
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
      Rank state{{}, {}, Lanes(shape, rank)};
      for (const auto& [slot, action] :
           repeat_block(v_half_block(shape.ranks, rank), shape.microbatches)) {
        state.left.push_back(action);
      }
      ranks_.push_back(std::move(state));
    }
  }

  std::vector<Row> run() {
    const std::size_t actions = 3 * std::size_t{shape_.stages()} * shape_.microbatches;
    for (std::size_t written = 0, before = 0; written < actions; ++slot_, before = written) {
      for (Rank& rank : ranks_) {
        written += step(rank) ? 1 : 0;
      }
      if (written == before) {
        throw std::logic_error("zerobubble: no rank can go on within this memory");
      }
    }
    std::vector<Row> rows;
    for (Rank& rank : ranks_) {
      rows.push_back(std::move(rank.row));
    }
    return rows;
  }

 private:
  struct Rank {
    std::deque<Action> left;  // in the order of the blocks
    Row row;
    Lanes lanes;
    std::uint32_t held = 0;  // activations: from a forward to its W
  };

  bool step(Rank& rank) {
    if (const std::optional<std::size_t> next = choose(rank)) {
      const Action action = rank.left[*next];
      rank.left.erase(rank.left.begin() + static_cast<std::ptrdiff_t>(*next));
      rank.held += action.pass == PIPER_FORWARD ? 1 : 0;
      (action.pass == PIPER_FORWARD ? forward_end_ : backward_end_)[index(rank, action)] =
          slot_ + 1;
      rank.lanes.write(rank.row, action);
      return true;
    }
    if (rank.row.owed() > 0) {
      rank.row.backward_weight();
      --rank.held;
      return true;
    }
    return false;
  }

  std::optional<std::size_t> choose(const Rank& rank) const {
    if (rank.left.empty()) {
      return std::nullopt;
    }
    if (is_ready(rank, rank.left.front())) {
      const bool fits = rank.left.front().pass != PIPER_FORWARD || rank.held < limit_;
      return fits ? std::optional<std::size_t>(0) : std::nullopt;
    }
    const std::optional<std::size_t> backward = ready_backward(rank);
    return backward ? backward : early_forward(rank);
  }

  // The first I that is ready; only the next one of each stage can be.
  std::optional<std::size_t> ready_backward(const Rank& rank) const {
    bool seen[2] = {false, false};
    for (std::size_t i = 0; i < rank.left.size() && !(seen[0] && seen[1]); ++i) {
      const Action& action = rank.left[i];
      if (action.pass == PIPER_BACKWARD_INPUT && !seen[action.back ? 1 : 0]) {
        if (is_ready(rank, action)) {
          return i;
        }
        seen[action.back ? 1 : 0] = true;
      }
    }
    return std::nullopt;
  }

  // The next forward on the way down, if it is ready and everything before it in the order still
  // fits.
  std::optional<std::size_t> early_forward(const Rank& rank) const {
    if (rank.held >= limit_) {
      return std::nullopt;
    }
    std::uint32_t needed = rank.held - rank.row.owed() + 1;
    for (std::size_t i = 0; i < rank.left.size() && needed <= limit_; ++i) {
      const Action& action = rank.left[i];
      if (action.pass == PIPER_FORWARD && !action.back) {
        return is_ready(rank, action) ? std::optional<std::size_t>(i) : std::nullopt;
      }
      needed += action.pass == PIPER_FORWARD ? 1 : -1U;
    }
    return std::nullopt;
  }

  bool is_ready(const Rank& rank, const Action& action) const {
    const std::uint32_t stage = stage_of(rank, action);
    const std::size_t at = index(rank, action);
    if (action.pass == PIPER_FORWARD) {
      return stage == 0 || forward_end_[at - shape_.microbatches] <= slot_;
    }
    const bool last = stage + 1 == shape_.stages();
    return forward_end_[at] <= slot_ && (last || backward_end_[at + shape_.microbatches] <= slot_);
  }

  static std::uint32_t stage_of(const Rank& rank, const Action& action) {
    return (action.back ? rank.lanes.back : rank.lanes.down).stage;
  }
  std::size_t index(const Rank& rank, const Action& action) const {
    return stage_of(rank, action) * std::size_t{shape_.microbatches} + action.microbatch;
  }

  const Shape& shape_;
  std::uint32_t limit_;
  std::vector<std::uint64_t> forward_end_, backward_end_;  // by stage and micro-batch
  std::vector<Rank> ranks_;
  std::uint64_t slot_ = 0;
};

Row at_its_slots(const Shape& shape, std::uint32_t rank) {
  Lanes lanes(shape, rank);
  Row row;
  std::uint64_t slot = 0;
  for (const auto& [at, action] :
       repeat_block(v_min_block(shape.ranks, rank), shape.microbatches)) {
    for (; slot < at && row.owed() > 0; ++slot) {
      row.backward_weight();
    }
    lanes.write(row, action);
    slot = at + 1;
  }
  pipeline::repeat(row.owed(), [&] { row.backward_weight(); });
  return row;
}

}  // namespace

std::vector<Row> v_min(const Shape& shape) {
  return pipeline::each_rank(shape, at_its_slots);
}

std::vector<Row> v_half(const Shape& shape) {
  return Squeeze(shape, shape.ranks / 2 * 2 + 2).run();
}

std::vector<Row> v_zb(const Shape& shape) {
  return Squeeze(shape, 2 * shape.ranks).run();
}

}  // namespace zerobubble
