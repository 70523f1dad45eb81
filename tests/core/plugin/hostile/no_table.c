// Its entry fails without a word.
#include <piper/piper.h>

PIPER_EXPORT const piper_plugin* PIPER_CALL PIPER_ENTRY(const piper_base* b, piper_ctx* c) {
  (void)b;
  (void)c;
  return NULL;
}
