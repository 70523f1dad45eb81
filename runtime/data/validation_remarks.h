// [validation] held against the data.
#pragma once

#include "core/base/diagnostic.h"
#include "core/config/config.h"

namespace piper {

// Keys of [validation] that have no effect, or less than they say, where so many rows are held out.
Diagnostics validation_remarks(const Config& config, std::int64_t held_out_rows);

}  // namespace piper
