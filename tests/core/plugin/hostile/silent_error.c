// Fails without saying why.
#include "hostile.h"

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  (void)self;
  (void)ctx;
  return 77;
}

ENTRY(plan)
