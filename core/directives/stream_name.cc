#include "core/directives/stream_name.h"

#include <algorithm>
#include <string_view>

namespace piper {
namespace {

// Streams of core itself.
constexpr std::string_view kReserved[] = {"compute", "scalar", "input"};

}  // namespace

Status check_stream(const std::string& name, const std::string& option, const Provenance& from,
                    const std::string& what) {
  const bool is_reserved =
      std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved) ||
      name.rfind("send ", 0) == 0 || name.rfind("recv ", 0) == 0;
  if (!name.empty() && !is_reserved) {
    return {};
  }
  return fail(error("directive.stream",
                    from.plugin + ": " + what + ": expected a " + option +
                        (name.empty() ? " with a name, got ''"
                                      : " of its own, got '" + name + "', which core uses"),
                    from.where));
}

}  // namespace piper
