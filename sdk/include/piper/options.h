/* The strategy's own options, as its manifest types them and the job file sets them; checked before
 * the plugin runs. */
#ifndef PIPER_OPTIONS_H
#define PIPER_OPTIONS_H

#include <piper/base.h>

typedef int32_t piper_option_state;
#define PIPER_OPTION_ABSENT 0  /* not written, and without a default */
#define PIPER_OPTION_DEFAULT 1 /* not written; has the manifest's default */
#define PIPER_OPTION_WRITTEN 2

/* Every function is [plan]. `where` may be NULL; it gets the place of the value: the job file, or
 * the [[strategy]] table for a default. PIPER_ERROR: the manifest has no such option, or it has
 * another type; PIPER_ABSENT: no value. */
typedef struct piper_option_api {
  uint32_t struct_size;
  uint32_t reserved;
  piper_code(PIPER_CALL *state)(piper_ctx *ctx, piper_str name, piper_option_state *out);
  piper_code(PIPER_CALL *get_bool)(piper_ctx *ctx, piper_str name, int32_t *out,
                                   piper_where *where);
  piper_code(PIPER_CALL *get_i64)(piper_ctx *ctx, piper_str name, int64_t *out, piper_where *where);
  piper_code(PIPER_CALL *get_f64)(piper_ctx *ctx, piper_str name, double *out, piper_where *where);
  /* Also of an enum: one of its values. */
  piper_code(PIPER_CALL *get_str)(piper_ctx *ctx, piper_str name, piper_str *out,
                                  piper_where *where);
  /* Lists: *out is of int64_t (of 0 and 1 for a list of bool), double or piper_str; *wheres, which
   * may be NULL, gets the place of every item, of piper_where. */
  piper_code(PIPER_CALL *get_i64_list)(piper_ctx *ctx, piper_str name, piper_span *out,
                                       piper_span *wheres);
  piper_code(PIPER_CALL *get_f64_list)(piper_ctx *ctx, piper_str name, piper_span *out,
                                       piper_span *wheres);
  piper_code(PIPER_CALL *get_str_list)(piper_ctx *ctx, piper_str name, piper_span *out,
                                       piper_span *wheres);
} piper_option_api;

#endif
