#include "eight_steps.h"

namespace dualpipe {

using pipeline::repeat;

Row eight_steps(Lane near, Lane far, std::uint32_t depth, std::uint32_t rank,
                std::uint32_t microbatches) {
  const std::uint32_t inward = depth - rank - 1;  // ranks further inside
  Row row;
  // 1. Fill: forwards of the near stream.
  repeat(2 * inward, [&] { row.forward(near); });
  // 2. The far stream arrives.
  repeat(rank + 1, [&] {
    row.forward(near);
    row.forward(far);
  });
  // 3. Its backwards begin; weights fill the gaps.
  repeat(inward, [&] {
    row.backward_input(far);
    row.backward_weight();
    row.forward(far);
  });
  // 4. The steady state: each forward beside a backward of the other stream. On the innermost rank
  // the first backward needs the forward beside it.
  bool dependent = inward == 0;
  repeat(microbatches + rank + 1 - 2 * depth, [&] {
    if (dependent) {
      row.forward(near);
      row.backward(far);
      dependent = false;
    } else {
      row.forward_beside_backward(near, far);
    }
    row.forward_beside_backward(far, near);
  });
  // 5. The near stream has no forwards left.
  repeat(inward, [&] {
    row.backward(far);
    row.forward_beside_backward(far, near);
  });
  // 6. Backwards of both in turn: half of them whole, then half that leave their weights for later.
  for (std::uint32_t i = 0; i < 2 * (rank + 1); ++i) {
    Lane& lane = i % 2 == 0 ? far : near;
    i <= rank ? row.backward(lane) : row.backward_input(lane);
  }
  // 7. Drain.
  repeat(inward, [&] {
    row.backward_weight();
    row.backward_input(near);
  });
  // 8. The weights that are left.
  repeat(rank + 1, [&] { row.backward_weight(); });
  return row;
}

}  // namespace dualpipe
