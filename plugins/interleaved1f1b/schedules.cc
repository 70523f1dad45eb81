#include "schedules.h"

#include <algorithm>

#include "interleave.h"

namespace interleaved1f1b {

using pipeline::Lane;
using pipeline::repeat;

Row gpipe(const Shape& shape, std::uint32_t rank) {
  Lane stage{rank};
  Row row;
  repeat(shape.microbatches, [&] { row.forward(stage); });
  repeat(shape.microbatches, [&] { row.backward(stage); });
  return row;
}

Row looped_bfs(const Shape& shape, std::uint32_t rank) {
  Row row;
  for (std::uint32_t stage = rank; stage < shape.stages(); stage += shape.ranks) {
    for (std::uint32_t m = 0; m < shape.microbatches; ++m) {
      row.add(stage, m, PIPER_FORWARD);
    }
  }
  const std::vector<piper_action> forwards = row.actions();
  std::for_each(forwards.rbegin(), forwards.rend(), [&](const piper_action& forward) {
    row.add(forward.stage, forward.microbatch, PIPER_BACKWARD);
  });
  return row;
}

Row one_forward_one_backward(const Shape& shape, std::uint32_t rank) {
  const std::uint32_t warm_up = std::min(shape.ranks - 1 - rank, shape.microbatches);
  Lane stage{rank};
  Row row;
  repeat(warm_up, [&] { row.forward(stage); });
  repeat(shape.microbatches - warm_up, [&] {
    row.forward(stage);
    row.backward(stage);
  });
  repeat(warm_up, [&] { row.backward(stage); });
  return row;
}

Row interleaved(const Shape& shape, std::uint32_t rank, std::uint32_t group, bool overlapped) {
  const std::uint32_t all = shape.microbatches * shape.stages_per_rank;
  const std::uint32_t ahead =
      (shape.stages_per_rank - 1) * group + 2 * (shape.ranks - 1 - rank) + (overlapped ? 1 : 0);
  const std::uint32_t warm_up = std::min(all, ahead);
  pipeline::Walk forward(shape, rank, group, pipeline::Walk::Direction::up);
  pipeline::Walk backward(shape, rank, group, pipeline::Walk::Direction::down);
  Row row;
  repeat(warm_up, [&] { row.forward(forward.next()); });
  repeat(all - warm_up, [&] {
    if (overlapped) {
      row.forward_beside_backward(forward.next(), backward.next());
    } else {
      row.forward(forward.next());
      row.backward(backward.next());
    }
  });
  repeat(warm_up, [&] { row.backward(backward.next()); });
  return row;
}

}  // namespace interleaved1f1b
