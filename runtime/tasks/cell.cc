#include "runtime/tasks/cell.h"

#include "runtime/tasks/rank.h"

namespace piper {
namespace {

Cell make_cell(const Buffer& buffer, const Rank& rank) {
  switch (buffer.kind) {
    case Buffer::Kind::input:
    case Buffer::Kind::activation:
    case Buffer::Kind::gradient:
    case Buffer::Kind::full_gradient:
    case Buffer::Kind::routed:
    case Buffer::Kind::routed_gradient:
      return TensorCell{};
    case Buffer::Kind::gathered: {
      const BucketState& bucket = rank.bucket(buffer.bucket);
      PIPER_CHECK(bucket.gathered, "a bucket is gathered of which the rank has the whole");
      return GatheredCell{{}, *bucket.gathered};
    }
    case Buffer::Kind::saved:
      return SavedCell{};
    case Buffer::Kind::loss_sum:
      return ScalarCell{rank.scalars.loss_sum_buffer};
    case Buffer::Kind::token_count:
      return ScalarCell{rank.scalars.token_count_buffer};
    case Buffer::Kind::grad_norm:
      return ScalarCell{rank.scalars.grad_norm_buffer};
    case Buffer::Kind::parameter:
    case Buffer::Kind::parameter_gradient:
    case Buffer::Kind::optimizer:
      return {};
  }
  return {};
}

}  // namespace

std::vector<Cell> make_cells(const Program& program, const Rank& rank) {
  const Charge charge(rank.account.get(), MemoryKind::workspace);
  std::vector<Cell> cells;
  cells.reserve(program.buffers.size());
  for (const Buffer& buffer : program.buffers) {
    cells.push_back(make_cell(buffer, rank));
  }
  return cells;
}

void SavedCell::clear() {
  inputs.clear();
  outputs.clear();
  loss.reset();
  ends.clear();
  unwanted.clear();
  rest.roots.clear();
  rest.gradients.clear();
}

void clear(Cell& cell) {
  std::visit(
      [](auto& contents) {
        if constexpr (requires { contents.clear(); }) {
          contents.clear();
        }
      },
      cell);
}

}  // namespace piper
