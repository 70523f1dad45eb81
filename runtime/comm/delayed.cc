#include "runtime/comm/delayed.h"

#include <utility>

#include "core/simulate/emulated.h"
#include "runtime/device/sleep.h"

namespace piper {
namespace {

class DelayedPointToPoint final : public PointToPoint {
 public:
  DelayedPointToPoint(std::unique_ptr<PointToPoint> real, const EmulateConfig& emulate)
      : real_(std::move(real)), emulate_(emulate) {}

  void send(std::uint32_t member, const Message& message) override {
    real_->send(member, message);
    hold(message);
  }
  void recv(std::uint32_t member, const Message& message) override {
    real_->recv(member, message);
    hold(message);
  }

 private:
  void hold(const Message& message) const {
    Sleep(message_delay(emulate_, static_cast<std::int64_t>(message.bytes))).wait();
  }

  std::unique_ptr<PointToPoint> real_;
  EmulateConfig emulate_;
};

class DelayedCollective final : public Collective {
 public:
  DelayedCollective(std::unique_ptr<Collective> real, const EmulateConfig& emulate)
      : real_(std::move(real)), emulate_(emulate) {}

  std::uint32_t size() const override { return real_->size(); }
  std::size_t all_reduce(std::uint32_t member, const Reduction& reduction) override {
    const std::size_t moved = real_->all_reduce(member, reduction);
    hold(2, reduction.count * width(reduction.element));
    return moved;
  }
  std::size_t reduce_scatter(std::uint32_t member, const Scatter& scatter) override {
    const std::size_t moved = real_->reduce_scatter(member, scatter);
    hold(1, scatter.count * width(scatter.element));
    return moved;
  }
  std::size_t all_gather(std::uint32_t member, const Gather& gather) override {
    const std::size_t moved = real_->all_gather(member, gather);
    hold(1, gather.bytes * size());
    return moved;
  }

 private:
  void hold(std::uint32_t turns, std::size_t bytes) const {
    Sleep(ring_delay(emulate_, turns, static_cast<std::int64_t>(bytes), size())).wait();
  }

  std::unique_ptr<Collective> real_;
  EmulateConfig emulate_;
};

}  // namespace

std::unique_ptr<PointToPoint> delay(std::unique_ptr<PointToPoint> real,
                                    const EmulateConfig& emulate) {
  return std::make_unique<DelayedPointToPoint>(std::move(real), emulate);
}

std::unique_ptr<Collective> delay(std::unique_ptr<Collective> real, const EmulateConfig& emulate) {
  return std::make_unique<DelayedCollective>(std::move(real), emulate);
}

}  // namespace piper
