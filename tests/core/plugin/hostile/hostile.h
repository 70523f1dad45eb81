// A plugin in plain C that does nothing wrong, for the hostile ones to deviate from.
#ifndef HOSTILE_H
#define HOSTILE_H

#include <piper/piper.h>
#include <string.h>

static const piper_base* base;
static const piper_host* host;
static piper_plugin table;

static inline piper_str text(const char* chars) {
  piper_str string = {chars, strlen(chars)};
  return string;
}

static inline piper_plugin* good_table(const piper_base* given, piper_ctx* ctx,
                                       piper_code(PIPER_CALL* plan)(void*, piper_ctx*)) {
  base = given;
  host = (const piper_host*)base->get_api(ctx, PIPER_ABI_MAJOR, PIPER_MIN_HOST_MINOR);
  if (host == NULL) {
    return NULL;
  }
  memset(&table, 0, sizeof(table));
  table.struct_size = sizeof(table);
  table.abi_minor = PIPER_ABI_MINOR;
  table.min_host_minor = PIPER_MIN_HOST_MINOR;
  table.built_with_minor = PIPER_ABI_MINOR;
  table.id = text(PIPER_PLUGIN_ID);
  table.version = text(PIPER_PLUGIN_VERSION);
  table.plan = plan;
  return &table;
}

static inline piper_code all_ranks(piper_ctx* ctx, piper_ranks* out) {
  piper_span none = {NULL, 0, 0};
  return host->ranks->at(ctx, &none, out);
}

// Everything on all ranks.
static inline piper_code place(piper_ctx* ctx, piper_ranks ranks) {
  piper_filter everything = {sizeof(everything), 0, {NULL, 0, 0}, {NULL, 0, 0}};
  piper_place directive = {sizeof(directive), 0, &everything, ranks, {NULL, 0}};
  return host->directives->place(ctx, &directive);
}

#define ENTRY(plan)                                                                            \
  PIPER_EXPORT const piper_plugin* PIPER_CALL PIPER_ENTRY(const piper_base* b, piper_ctx* c) { \
    return good_table(b, c, plan);                                                             \
  }

#endif
