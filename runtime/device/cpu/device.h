// The CPU as a device.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/device/cancellation.h"
#include "runtime/device/cpu/stream.h"
#include "runtime/device/device.h"

namespace piper {

class CpuDevice final : public Device {
 public:
  // `threads`: streams that will be made. Where every one has a core, waits yield before they
  // sleep.
  CpuDevice(Cancellation& cancellation, std::size_t threads);

  DeviceId id() const override { return {}; }
  std::uint64_t now() const override { return CpuStream::now(); }
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<DeviceStream> make_stream(const std::string& name,
                                            std::function<void()> on_start) override;

 private:
  Cancellation& cancellation_;
  std::chrono::microseconds patience_;
};

}  // namespace piper
