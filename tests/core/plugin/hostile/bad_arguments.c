// Breaks the rules of every kind of argument, and says that all is well.
#include "hostile.h"

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  const piper_directive_api* directives = host->directives;
  piper_filter filter = {sizeof(filter), 0, {NULL, 0, 0}, {NULL, 0, 0}};
  piper_condition condition = {sizeof(condition), 99, {NULL, 0}, {NULL, 0, 0}};
  piper_tag no_filter = {sizeof(no_filter), 0, {NULL, 0}, NULL, NULL};
  piper_partition parts = {sizeof(parts), 99, 1, 0, {NULL, 0}, {NULL, 0, 0}};
  piper_tag tag = {sizeof(tag), 0, {NULL, 0}, &filter, NULL};
  piper_span huge = {&filter, UINT64_MAX, 8};
  piper_graph small = {8,           0, 0, 0, {NULL, 0}, {NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0},
                       {NULL, 0, 0}};
  piper_diag diag = {sizeof(diag), 55, {NULL, 0}, {NULL, 0}, {0}, {NULL, 0, 0}};
  piper_ranks ranks;
  piper_action action = {0, 0, 9, 0};
  (void)self;
  directives->place(ctx, NULL);
  no_filter.name = text("PP");
  directives->tag(ctx, &no_filter);
  tag.name.ptr = NULL;
  tag.name.len = 3;
  directives->tag(ctx, &tag);
  tag.name = text("\xff\xfe");
  directives->tag(ctx, &tag);
  tag.name = text("PP");
  tag.struct_size = 4;
  directives->tag(ctx, &tag);
  tag.struct_size = sizeof(tag);
  tag.partition = &parts;
  directives->tag(ctx, &tag);
  parts.struct_size = 4;
  directives->tag(ctx, &tag);
  tag.partition = NULL;
  filter.passes = 1u << 20;
  directives->tag(ctx, &tag);
  filter.passes = 0;
  filter.conditions.ptr = &condition;
  filter.conditions.count = 1;
  filter.conditions.stride = sizeof(condition);
  directives->tag(ctx, &tag);
  filter.conditions = huge;
  directives->tag(ctx, &tag);
  host->graph->graph(ctx, &small);
  host->graph->job(ctx, NULL);
  host->graph->units(ctx, text("layer"), NULL);
  base->report(ctx, NULL);
  base->report(ctx, &diag);
  host->ranks->at(ctx, &huge, &ranks);
  if (all_ranks(ctx, &ranks) == PIPER_OK) {
    directives->order_chain(ctx, ranks, &action, 1, sizeof(action));
    directives->order_chain(ctx, ranks, NULL, 1, sizeof(action));
  }
  directives->recompute(ctx, NULL);
  return PIPER_OK;
}

ENTRY(plan)
