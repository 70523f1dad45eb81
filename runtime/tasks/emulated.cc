#include "runtime/tasks/emulated.h"

#include <ATen/ops/zeros.h>

#include "runtime/device/sleep.h"
#include "runtime/tasks/chain_memory.h"

namespace piper {
namespace {

class EmulatedTask final : public ReleasingTask {
 public:
  EmulatedTask(const Site& site, std::uint64_t nanoseconds)
      : ReleasingTask(site), memory_(site), nanoseconds_(nanoseconds) {
    for (const BufferId id : site.program.writes_of(site.task)) {
      const Buffer& buffer = site.program.buffer(id);
      if (buffer.kind == Buffer::Kind::activation || buffer.kind == Buffer::Kind::gradient) {
        results_.push_back({&site.cell<TensorCell>(id),
                            site.shape(buffer.value, site.task.microbatch),
                            to_torch(site.model().value(buffer.value).dtype)});
      }
    }
  }

 private:
  struct Result {
    TensorCell* cell;
    std::vector<std::int64_t> shape;
    at::ScalarType dtype;
  };

  void enqueue(const Launch& launch) override {
    const Sleep sleep(nanoseconds_);
    const Charge charge(MemoryKind::activation);
    memory_.enter(launch);
    for (const Result& result : results_) {
      result.cell->tensor =
          at::zeros(result.shape, at::dtype(result.dtype).device(to_torch(launch.device)));
    }
    sleep.wait();
  }

  ChainMemory memory_;
  std::uint64_t nanoseconds_;
  std::vector<Result> results_;
};

}  // namespace

MadeTask make_emulated(const Site& site, std::uint64_t nanoseconds) {
  return std::make_unique<EmulatedTask>(site, nanoseconds);
}

}  // namespace piper
