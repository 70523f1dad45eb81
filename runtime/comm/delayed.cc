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
  void all_reduce(std::uint32_t member, const Reduction& reduction) override {
    real_->all_reduce(member, reduction);
    const std::size_t bytes = reduction.count * (reduction.element == Element::float64 ? 8 : 4);
    Sleep(all_reduce_delay(emulate_, static_cast<std::int64_t>(bytes), size())).wait();
  }

 private:
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
