#include "runtime/tasks/transfer.h"

namespace piper {
namespace {

class TransferTask : public ReleasingTask {
 public:
  explicit TransferTask(const Site& site)
      : ReleasingTask(site), self_(index(site.task.node)), peer_(index(site.task.peer)) {}

  Status resolve(const Site& site, std::span<const BufferId> buffers) {
    if (buffers.size() != 1 || !valid(site.task.communicator)) {
      return misfit(site, "expected one buffer and a communicator");
    }
    const Buffer& buffer = site.program.buffer(buffers[0]);
    cell_ = &site.cell<TensorCell>(buffers[0]);
    moved_ = &site.moved;
    link_ = site.communications[index(site.task.communicator)].point_to_point.get();
    shape_ = site.shape(buffer.value, site.task.microbatch);
    dtype_ = site.model().value(buffer.value).dtype;
    return {};
  }

 protected:
  Message message(const at::Tensor& tensor) const {
    return {self_, peer_, dtype_, tensor.data_ptr(), static_cast<std::size_t>(tensor.numel())};
  }

  std::uint32_t self_, peer_;
  TensorCell* cell_ = nullptr;
  PointToPoint* link_ = nullptr;
  std::int64_t* moved_ = nullptr;
  std::vector<std::int64_t> shape_;
  DType dtype_ = DType::float32;
};

class SendTask final : public TransferTask {
 public:
  using TransferTask::TransferTask;

 private:
  void enqueue(const Launch& launch) override {
    const at::Tensor& value = cell_->tensor;
    if (value.sizes() != at::IntArrayRef(shape_) || value.scalar_type() != to_torch(dtype_)) {
      throw TaskFailure("run.shape",
                        "expected a value of sizes " + c10::str(at::IntArrayRef(shape_)) +
                            " and type " + c10::toString(to_torch(dtype_)) + ", got " +
                            c10::str(value.sizes()) + " and " + c10::toString(value.scalar_type()));
    }
    link_->send(launch, message(value.contiguous()));
    *moved_ = static_cast<std::int64_t>(value.nbytes());
  }
};

class RecvTask final : public TransferTask {
 public:
  RecvTask(const Site& site, Memory memory) : TransferTask(site), memory_(std::move(memory)) {}

 private:
  void enqueue(const Launch& launch) override {
    cell_->tensor = memory_.take(MemoryKind::activation, launch).view(shape_);
    cell_->in_arena = memory_.place.defined();
    link_->recv(launch, message(cell_->tensor));
  }

  Memory memory_;
};

}  // namespace

MadeTask make_send(const Site& site) {
  auto task = std::make_unique<SendTask>(site);
  PIPER_TRY(task->resolve(site, site.program.reads_of(site.task)));
  return task;
}

MadeTask make_recv(const Site& site) {
  const std::span<const BufferId> writes = site.program.writes_of(site.task);
  auto task = std::make_unique<RecvTask>(site, writes.empty() ? Memory{} : site.memory(writes[0]));
  PIPER_TRY(task->resolve(site, writes));
  return task;
}

}  // namespace piper
