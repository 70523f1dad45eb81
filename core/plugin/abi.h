// Which plugins this host can serve.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/diagnostic.h"

namespace piper {

struct AbiVersion {
  std::uint32_t major = 0, minor = 0;
};
std::string to_string(AbiVersion version);  // "0.1"

// This host's.
AbiVersion host_abi();

// The minor that `host` and a plugin agree on: the lower one. `lowest` is the lowest host that the
// plugin works with, `built_with` the minor of its headers. While the major is 0, all three minors
// must be the same. Codes: plugin.abi_major, plugin.abi_minor; the message says which side to
// upgrade.
Expected<std::uint32_t> negotiate(AbiVersion host, AbiVersion lowest, std::uint32_t built_with);

}  // namespace piper
