// What a task is given when it is launched: where, and in which step.
#pragma once

#include <cstdint>

#include "runtime/device/device.h"

namespace piper {

// A launch enqueues a task's work on a stream, and may return before any of it is done:
//
//   * the work is done when the event that the plan lets the task record has come, not before; the
//     host has no other idea of done
//   * work of one stream is done in the order of its launches; other streams wait for events
//   * what a task frees is reused after its event only: by work of the same stream, by a task that
//     waits for the event, or in the arena, where the plan has put that wait
//   * times are the device's (DeviceStream::stamp), not those of the launching thread
//   * a number that the host needs while the step runs is waited for explicitly
//
// On a CPU a launch does the work.
struct Launch {
  DeviceStream& stream;
  DeviceId device;               // what tensors are made on; to_torch() where LibTorch is
  std::uint64_t generation = 0;  // of the plan's period, from 1
  std::int64_t step = 0;         // the optimizer's count
  double lr_factor = 1;
};

}  // namespace piper
