// The threads of all ranks: one a rank and stream. The plans of a job share them by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/plan/plan.h"
#include "runtime/device/device.h"

namespace piper {

// Streams that run nothing have no thread.
std::size_t count_workers(const Plans& plans);

class Workers {
 public:
  // `on_start(rank)` runs first on each thread.
  Workers(const Plans& plans, Device& device,
          const std::function<void(std::uint32_t rank)>& on_start);

  DeviceStream& stream(std::uint32_t rank, const std::string& name) {
    return *streams_.at({rank, name});
  }
  void abandon();

 private:
  std::map<std::pair<std::uint32_t, std::string>, std::unique_ptr<DeviceStream>> streams_;
};

}  // namespace piper
