/* Strings, codes, arrays, handles and diagnostics, and the two functions that never change.
 *
 * Rules that hold for every function of the ABI, unless it says otherwise:
 *  - Errors: it returns a piper_code. Before returning a failure the host has recorded a
 * diagnostic, and has changed neither the job nor an out-parameter. A job with one recorded error
 * is refused, whatever the plugin returns then.
 *  - Ownership: what one side passes, the other borrows for the call and copies if it wants to keep
 * it. What the host gives out stays valid and unchanged until `plan` returns. Neither side frees
 * the other's memory.
 *  - Threads: [plan] is called on the thread that called `plan`, during that call. [scan] is called
 * on the host's thread, touches no device and starts no thread. A call from elsewhere is refused.
 *  - Exceptions never cross.
 *  - A struct that can grow begins with struct_size, which its maker sets to its sizeof; unset
 * fields are zero, and zero means "default". Where zero is a legal value too, a `present` mask says
 * which fields count. */
#ifndef PIPER_BASE_H
#define PIPER_BASE_H

#include <piper/version.h>

/* 0 = done. Any other value is a failure, known or not. */
typedef int32_t piper_code;
#define PIPER_OK 0
#define PIPER_ERROR 1 /* refused; the diagnostic says why */
#define PIPER_INVALID \
  2 /* an argument breaks the ABI's rules: NULL, struct_size, an unknown enum value */
#define PIPER_STALE 3       /* a handle that this call of `plan` did not get */
#define PIPER_UNSUPPORTED 4 /* the ABI has it, this host does not do it yet */
#define PIPER_WRONG_STATE 5 /* called outside `plan`, or on another thread */
#define PIPER_ABSENT 6      /* an option without value or default; no diagnostic */
#define PIPER_INTERNAL 7    /* the host failed, for example for lack of memory */

/* UTF-8, not terminated by NUL. ptr may be NULL where len is 0. */
typedef struct piper_str {
  const char *ptr;
  uint64_t len;
} piper_str;

/* `count` elements, `stride` bytes apart: walk it by stride, because the two sides' sizeof may
 * differ. ptr may be NULL where count is 0. */
typedef struct piper_span {
  const void *ptr;
  uint64_t count;
  uint64_t stride;
} piper_span;

/* Handles: index and generation, checked by the host at every use. All zero is no handle. */
typedef struct piper_where {
  uint64_t bits; /* a place in the job file or the model's source; zero: the plugin's [[strategy]]
                    table */
} piper_where;

typedef struct piper_ctx piper_ctx; /* the host's; valid as long as the process */

typedef int32_t piper_severity;
#define PIPER_SEVERITY_ERROR 0
#define PIPER_SEVERITY_WARNING 1
#define PIPER_SEVERITY_HOST_MISBEHAVING 2 /* the host broke the ABI; counts as an error */
#define PIPER_SEVERITY_PLUGIN_MISBEHAVING \
  3 /* the plugin found a fault of its own; counts as an error */

typedef struct piper_note {
  uint32_t struct_size;
  uint32_t reserved;
  piper_str message;
  piper_where where;
} piper_note;

/* Lower case, no final stop, with the facts: "expected X, got Y". The host adds the plugin's id. */
typedef struct piper_diag {
  uint32_t struct_size;
  piper_severity severity;
  piper_str code; /* stable: "<plugin id>.<rule>" */
  piper_str message;
  piper_where where;
  piper_span notes; /* of piper_note */
} piper_diag;

/* Frozen for ever, so that a plugin that meets the wrong host can still say so. */
typedef struct piper_base {
  /* Records a diagnostic; copied during the call. From the first line of the entry on. [scan],
   * [plan] PIPER_INVALID: `diag` is NULL or malformed (recorded as the plugin's fault). */
  piper_code(PIPER_CALL *report)(piper_ctx *ctx, const piper_diag *diag);
  /* The host's table of that major, a piper_host for major 0, whose abi_minor is the host's own;
   * NULL, with a diagnostic recorded, when the host has no such major or not `min_minor`. Owned by
   * the host, valid as long as the process. [scan], [plan] */
  const void *(PIPER_CALL *get_api)(piper_ctx *ctx, uint32_t major, uint32_t min_minor);
} piper_base;

#endif
