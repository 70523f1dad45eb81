// Its table says that it is too small to hold `plan`.
#include "hostile.h"

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  (void)self;
  (void)ctx;
  return PIPER_OK;
}

PIPER_EXPORT const piper_plugin* PIPER_CALL PIPER_ENTRY(const piper_base* b, piper_ctx* c) {
  piper_plugin* result = good_table(b, c, plan);
  result->struct_size = 16;
  return result;
}
