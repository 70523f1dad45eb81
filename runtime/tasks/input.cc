#include "runtime/tasks/input.h"

namespace piper {
namespace {

class InputTask final : public ReleasingTask {
 public:
  explicit InputTask(const Site& site)
      : ReleasingTask(site), rank_(site.rank), model_(site.model()) {
    block_ = cut_rows({0, site.plan.global_rows},
                      static_cast<std::uint32_t>(site.program.ranks.size()), site.coordinate);
    for (const BufferId id : site.program.writes_of(site.task)) {
      const Buffer& buffer = site.program.buffer(id);
      const Rows rows = rows_of(site.plan, site.program, site.coordinate, buffer.microbatch);
      pieces_.push_back(
          {&site.cell<TensorCell>(id), buffer.value, rows.begin - block_.begin, rows.count});
    }
  }

 private:
  struct Piece {
    TensorCell* cell;
    ValueId value;
    std::int64_t begin, count;
  };

  // Copies: the loader's memory is not the rank's.
  void enqueue(const Launch& launch) override {
    const Charge charge(MemoryKind::activation);
    for (const Piece& piece : pieces_) {
      const auto found = rank_.batch.find(piece.value);
      const std::string& name = model_.value(piece.value).name;
      if (found == rank_.batch.end()) {
        throw TaskFailure("run.batch", "the batch has no input '" + name + "'");
      }
      if (found->second.dim() == 0 || found->second.size(0) != block_.count) {
        throw TaskFailure("run.batch", "expected " + std::to_string(block_.count) +
                                           " rows of input '" + name + "', got " +
                                           c10::str(found->second.sizes()));
      }
      piece.cell->tensor = found->second.narrow(0, piece.begin, piece.count)
                               .to(to_torch(launch.device), /*non_blocking=*/true, /*copy=*/true);
    }
  }

  const Rank& rank_;
  const ModelGraph& model_;
  Rows block_;
  std::vector<Piece> pieces_;
};

}  // namespace

MadeTask make_input(const Site& site) {
  return std::make_unique<InputTask>(site);
}

}  // namespace piper
