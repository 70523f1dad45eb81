// Communicators that take longer than they would ([emulate]): links of another machine.
#pragma once

#include <memory>

#include "core/config/config.h"
#include "runtime/comm/communicator.h"

namespace piper {

// Every member is held until the time of a link has passed since all were there.
std::shared_ptr<PointToPoint> delay(std::shared_ptr<PointToPoint> real,
                                    const EmulateConfig& emulate);
std::shared_ptr<Collective> delay(std::shared_ptr<Collective> real, const EmulateConfig& emulate);

}  // namespace piper
