#include "runtime/device/cpu/device.h"

#include <thread>

#include "runtime/device/cpu/event.h"

namespace piper {
namespace {

constexpr std::chrono::microseconds kPatience{50};

}  // namespace

CpuDevice::CpuDevice(Cancellation& cancellation, std::size_t threads)
    : cancellation_(cancellation),
      patience_(threads <= std::thread::hardware_concurrency() ? kPatience
                                                               : std::chrono::microseconds{0}) {}

std::unique_ptr<Event> CpuDevice::make_event() {
  return std::make_unique<CpuEvent>(cancellation_, patience_);
}

std::unique_ptr<DeviceStream> CpuDevice::make_stream(const std::string& name,
                                                     std::function<void()> on_start) {
  return std::make_unique<CpuStream>(name, std::move(on_start));
}

}  // namespace piper
