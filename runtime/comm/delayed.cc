#include "runtime/comm/delayed.h"

#include <utility>

#include "core/simulate/emulated.h"
#include "runtime/device/sleep.h"

namespace piper {
namespace {

class DelayedPointToPoint final : public PointToPoint {
 public:
  DelayedPointToPoint(std::shared_ptr<PointToPoint> real, const EmulateConfig& emulate)
      : real_(std::move(real)), emulate_(emulate) {}

  void send(const Launch& launch, const Message& message) override {
    real_->send(launch, message);
    hold(message);
  }
  void recv(const Launch& launch, const Message& message) override {
    real_->recv(launch, message);
    hold(message);
  }

 private:
  void hold(const Message& message) const {
    Sleep(message_delay(emulate_, static_cast<std::int64_t>(message.bytes()))).wait();
  }

  std::shared_ptr<PointToPoint> real_;
  EmulateConfig emulate_;
};

class DelayedCollective final : public Collective {
 public:
  DelayedCollective(std::shared_ptr<Collective> real, const EmulateConfig& emulate)
      : real_(std::move(real)), emulate_(emulate) {}

  std::uint32_t size() const override { return real_->size(); }
  std::size_t all_reduce(const Launch& launch, const Reduction& reduction) override {
    const std::size_t moved = real_->all_reduce(launch, reduction);
    hold(2, reduction.count * size_of(reduction.dtype));
    return moved;
  }
  std::size_t reduce_scatter(const Launch& launch, const Scatter& scatter) override {
    const std::size_t moved = real_->reduce_scatter(launch, scatter);
    hold(1, scatter.count * size_of(scatter.dtype));
    return moved;
  }
  std::size_t all_gather(const Launch& launch, const Gather& gather) override {
    const std::size_t moved = real_->all_gather(launch, gather);
    hold(1, gather.count * size_of(gather.dtype) * size());
    return moved;
  }

 private:
  void hold(std::uint32_t turns, std::size_t bytes) const {
    Sleep(ring_delay(emulate_, turns, static_cast<std::int64_t>(bytes), size())).wait();
  }

  std::shared_ptr<Collective> real_;
  EmulateConfig emulate_;
};

}  // namespace

std::shared_ptr<PointToPoint> delay(std::shared_ptr<PointToPoint> real,
                                    const EmulateConfig& emulate) {
  return std::make_shared<DelayedPointToPoint>(std::move(real), emulate);
}

std::shared_ptr<Collective> delay(std::shared_ptr<Collective> real, const EmulateConfig& emulate) {
  return std::make_shared<DelayedCollective>(std::move(real), emulate);
}

}  // namespace piper
