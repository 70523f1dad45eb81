#include "core/plugin/abi.h"

#include <piper/version.h>

#include <algorithm>

namespace piper {

std::string to_string(AbiVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

AbiVersion host_abi() {
  return {PIPER_ABI_MAJOR, PIPER_ABI_MINOR};
}

Expected<std::uint32_t> negotiate(AbiVersion host, AbiVersion lowest, std::uint32_t built_with) {
  const auto refuse = [&](const char* code, const std::string& what, const std::string& advice) {
    return fail(
        error(code, what + "; this Piper has plugin ABI " + to_string(host) + ": " + advice));
  };
  const std::string upgrade_host = "upgrade Piper, or use an older build of the plugin";
  const std::string rebuild = "rebuild the plugin with this Piper's SDK";
  if (lowest.major != host.major) {
    return refuse("plugin.abi_major", "the plugin is made for plugin ABI " + to_string(lowest),
                  lowest.major > host.major ? upgrade_host : rebuild);
  }
  if (lowest.minor > host.minor) {
    return refuse("plugin.abi_minor", "the plugin needs at least plugin ABI " + to_string(lowest),
                  upgrade_host);
  }
  if (built_with < lowest.minor) {
    return refuse("plugin.abi_minor",
                  "the plugin was built with plugin ABI " + to_string({lowest.major, built_with}) +
                      ", below the " + to_string(lowest) + " that it asks for",
                  rebuild);
  }
  if (host.major == 0 && (lowest.minor != host.minor || built_with != host.minor)) {
    return refuse("plugin.abi_minor",
                  "the plugin was built with plugin ABI " +
                      to_string({lowest.major, std::max(built_with, lowest.minor)}) +
                      ", and drafts (major 0) must be the same",
                  built_with > host.minor ? upgrade_host : rebuild);
  }
  return std::min(built_with, host.minor);
}

}  // namespace piper
