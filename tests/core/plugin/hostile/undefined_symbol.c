// Calls a function that nobody has.
#include "hostile.h"

extern piper_code nobody_has_this(void);

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  (void)self;
  (void)ctx;
  return nobody_has_this();
}

ENTRY(plan)
