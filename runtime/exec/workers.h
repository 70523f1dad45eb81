// The threads of the local ranks: one a rank and stream. The plans of a job share them by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/device/device.h"

namespace piper {

// Streams that run nothing have no thread.
class Workers {
 public:
  // `on_start` runs first on each thread, with the place of its rank in `ranks`.
  Workers(const Plans& plans, const std::vector<std::uint32_t>& ranks, Device& device,
          const std::function<void(std::size_t local)>& on_start);

  DeviceStream& stream(std::uint32_t rank, const std::string& name) {
    return *streams_.at({rank, name});
  }
  void abandon();

 private:
  std::map<std::pair<std::uint32_t, std::string>, std::unique_ptr<DeviceStream>> streams_;
};

}  // namespace piper
