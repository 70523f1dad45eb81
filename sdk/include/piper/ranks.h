/* Families of groups of ranks, made from the mesh or from lists. */
#ifndef PIPER_RANKS_H
#define PIPER_RANKS_H

#include <piper/base.h>

/* A family: one or more groups of ranks, disjoint and of equal size, each an ordered list. Most are
 * of one group. */
typedef struct piper_ranks {
  uint64_t bits;
} piper_ranks;

/* A coordinate on a mesh axis. Frozen. */
typedef struct piper_coordinate {
  piper_str axis;
  uint64_t index;
} piper_coordinate;

/* Equal calls give equal handles. Every function is [plan]; PIPER_ERROR: an axis that the mesh does
 * not have, a coordinate outside its axis, a rank outside the world, a rank twice; PIPER_STALE: a
 * family that is not of this plan. */
typedef struct piper_ranks_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* One group: the ranks with all those coordinates, ascending. No coordinates: every rank.
   * `at` is of piper_coordinate. */
  piper_code(PIPER_CALL *at)(piper_ctx *ctx, const piper_span *at, piper_ranks *out);
  /* The groups within which only the coordinates of `axes` (of piper_str) differ, by their lowest
   * rank. "ep" means blocks of consecutive coordinates of dp, "edp" what is left of dp when those
   * are taken out. */
  piper_code(PIPER_CALL *along)(piper_ctx *ctx, const piper_span *axes, piper_ranks *out);
  /* Explicit: `ranks` is of uint32_t, group after group, `group_size` each. */
  piper_code(PIPER_CALL *of)(piper_ctx *ctx, const piper_span *ranks, uint32_t group_size,
                             piper_ranks *out);
  /* The family that holds only group number `index` of `family`. */
  piper_code(PIPER_CALL *group)(piper_ctx *ctx, piper_ranks family, uint32_t index,
                                piper_ranks *out);
  /* The ranks, group after group: *out is of uint32_t; *group_size is the size of each. */
  piper_code(PIPER_CALL *list)(piper_ctx *ctx, piper_ranks family, piper_span *out,
                               uint32_t *group_size);
} piper_ranks_api;

#endif
