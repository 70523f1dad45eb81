#include "handcrafted.h"

#include <algorithm>

#include "interleave.h"

namespace zerobubble {

using pipeline::Lane;
using pipeline::repeat;
using pipeline::Walk;

Row interleaved(const Shape& shape, std::uint32_t rank, std::uint32_t group) {
  const std::uint32_t all = shape.microbatches * shape.stages_per_rank;
  const std::uint32_t warm_up =
      std::min(all, (shape.stages_per_rank - 1) * group + shape.ranks - 1 - rank);
  Walk forward(shape, rank, group, Walk::Direction::up);
  Walk backward(shape, rank, group, Walk::Direction::down);
  Row row;
  const auto backward_step = [&] {
    row.backward_input(backward.next());
    if (row.owed() > rank) {
      row.backward_weight();
    }
  };
  repeat(warm_up, [&] { row.forward(forward.next()); });
  repeat(all - warm_up, [&] {
    row.forward(forward.next());
    backward_step();
  });
  repeat(warm_up, backward_step);
  repeat(row.owed(), [&] { row.backward_weight(); });
  return row;
}

Row zb_h1(const Shape& shape, std::uint32_t rank) {
  const std::uint32_t warm_up = std::min(shape.ranks - 1 - rank, shape.microbatches);
  const std::uint32_t steady = shape.microbatches - warm_up;
  Lane stage{rank};
  Row row;
  // From the last steady backward on, every one is split and followed by an older one's weights.
  const auto draining_backward = [&] {
    row.backward_input(stage);
    if (stage.next_backward > rank) {
      row.backward_weight();
    }
  };
  repeat(warm_up, [&] { row.forward(stage); });
  for (std::uint32_t k = 0; k < steady; ++k) {
    row.forward(stage);
    if (rank == 0) {
      row.backward(stage);
    } else if (k + 1 == steady) {
      draining_backward();
    } else if (k < rank) {
      row.backward_input(stage);
    } else {
      row.backward(stage);
    }
  }
  repeat(warm_up, [&] { rank == 0 ? row.backward(stage) : draining_backward(); });
  repeat(row.owed(), [&] { row.backward_weight(); });
  return row;
}

Row zbv(const Shape& shape, std::uint32_t rank) {
  const std::uint32_t microbatches = std::max(2 * shape.ranks - 1, shape.microbatches);
  Lane down{rank}, back{2 * shape.ranks - 1 - rank};
  Row row;
  const auto whole_backward = [&](Lane& lane) {
    row.backward_input(lane);
    row.backward_weight(lane);
  };
  repeat(2 * (shape.ranks - rank) - 1, [&] { row.forward(down); });
  repeat(rank, [&] {
    row.forward(back);
    row.forward(down);
  });
  repeat(shape.ranks - rank, [&] {
    row.forward(back);
    whole_backward(back);
  });
  while (back.next_forward < down.next_forward || down.next_forward < microbatches) {
    if (down.next_forward < microbatches) {
      row.forward(down);
    }
    whole_backward(down);
    row.forward(back);
    whole_backward(back);
  }
  repeat(rank, [&] {
    row.backward_input(down);
    row.backward_input(back);
  });
  repeat(shape.ranks - rank, [&] { whole_backward(down); });
  while (row.owes(back)) {
    row.backward_weight(back);
  }
  repeat(row.owed(), [&] { row.backward_weight(); });
  row.keep_microbatches(shape.microbatches);
  return row;
}

}  // namespace zerobubble
