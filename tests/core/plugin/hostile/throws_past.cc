// Throws through the boundary, having no wrapper.
#include <piper/piper.h>

#include <stdexcept>

namespace {

piper_code PIPER_CALL plan(void*, piper_ctx*) {
  throw std::runtime_error("nobody caught this");
}

piper_plugin table{};

}  // namespace

PIPER_EXPORT const piper_plugin* PIPER_CALL PIPER_ENTRY(const piper_base*, piper_ctx*) {
  const piper_str id{PIPER_PLUGIN_ID, sizeof(PIPER_PLUGIN_ID) - 1};
  const piper_str version{PIPER_PLUGIN_VERSION, sizeof(PIPER_PLUGIN_VERSION) - 1};
  table = {sizeof(table),
           PIPER_ABI_MINOR,
           PIPER_MIN_HOST_MINOR,
           PIPER_ABI_MINOR,
           id,
           version,
           plan,
           nullptr,
           nullptr,
           nullptr};
  return &table;
}
