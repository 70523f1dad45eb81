// Asks for what the ABI has and this host does not do yet.
#include "hostile.h"

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  piper_filter everything = {sizeof(everything), 0, {NULL, 0, 0}, {NULL, 0, 0}};
  piper_shard shard = {sizeof(shard), PIPER_SHARD_EXPERTS, &everything, {0}, {NULL, 0}};
  piper_replicate replicate = {sizeof(replicate),
                               PIPER_REPLICATE_PREFETCH,
                               &everything,
                               {0},
                               {NULL, 0},
                               {NULL, 0},
                               0,
                               PIPER_SHARD_PARAMS,
                               0,
                               0,
                               0};
  (void)self;
  if (all_ranks(ctx, &shard.ranks) != PIPER_OK) {
    return PIPER_ERROR;
  }
  replicate.ranks = shard.ranks;
  host->directives->shard(ctx, &shard);
  return host->directives->replicate(ctx, &replicate);
}

ENTRY(plan)
