// Orders with controllable memory: a building block says when one micro-batch computes on each
// rank, in slots of equal length; repeated every 6 slots (F, I and W of two stages a rank), blocks
// do not collide. (Qi et al. 2024, Pipeline Parallelism with Controllable Memory, section 3; the
// slots are those of sail-sg's zbv_greedy.) Layout v, two stages a rank.
#pragma once

#include <vector>

#include "row.h"

namespace zerobubble {

using pipeline::Row;
using pipeline::Shape;

// A third of 1F1B's memory: every rank at its own slots, W in the first free one after its I.
// Holds 2 floor((R + 4) / 3).
std::vector<Row> v_min(const Shape& shape);

// Half of 1F1B's memory; actions move to earlier slots where that memory allows. Holds
// 2 floor(R / 2) + 2.
std::vector<Row> v_half(const Shape& shape);

// The same with the memory of 1F1B, 2R: as short as zbv, and shorter for few micro-batches.
std::vector<Row> v_zb(const Shape& shape);

}  // namespace zerobubble
