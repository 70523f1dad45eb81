// Keeps a family of ranks from one call of plan to the next.
#include "hostile.h"

static piper_ranks kept;

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  (void)self;
  if (kept.bits == 0 && all_ranks(ctx, &kept) != PIPER_OK) {
    return PIPER_ERROR;
  }
  return place(ctx, kept);
}

ENTRY(plan)
