// Proposes one placement.
#include "hostile.h"

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  piper_ranks ranks;
  (void)self;
  if (all_ranks(ctx, &ranks) != PIPER_OK) {
    return PIPER_ERROR;
  }
  return place(ctx, ranks);
}

ENTRY(plan)
