// Its manifest is of today, its code asks for a host of tomorrow.
#include <piper/piper.h>

PIPER_EXPORT const piper_plugin* PIPER_CALL PIPER_ENTRY(const piper_base* b, piper_ctx* c) {
  return (const piper_plugin*)b->get_api(c, PIPER_ABI_MAJOR, PIPER_ABI_MINOR + 7);
}
