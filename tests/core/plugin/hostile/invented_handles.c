// Makes handles up, ignores what the host answers, and says that all is well.
#include "hostile.h"

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  piper_region region = {0xdeadbeefcafeULL};
  piper_filter filter = {sizeof(filter), 0, {NULL, 0, 0}, {NULL, 0, 0}};
  piper_tag tag = {sizeof(tag), 0, {NULL, 0}, &filter, NULL};
  piper_ranks ranks = {0xffffffffffffffffULL};
  piper_span list;
  uint32_t size;
  (void)self;
  filter.regions.ptr = &region;
  filter.regions.count = 1;
  filter.regions.stride = sizeof(region);
  tag.name = text("PP");
  host->directives->tag(ctx, &tag);
  place(ctx, ranks);
  host->ranks->list(ctx, ranks, &list, &size);
  return PIPER_OK;
}

ENTRY(plan)
