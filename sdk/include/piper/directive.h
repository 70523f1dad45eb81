/* What a strategy says. Each directive states its meaning in one struct; the host records it, in
 * order, and applies all of a plugin's directives or none. Phases are fixed: tag, split,
 * split_backward, place, replicate, shard, order, recompute. */
#ifndef PIPER_DIRECTIVE_H
#define PIPER_DIRECTIVE_H

#include <piper/filter.h>
#include <piper/order.h>
#include <piper/ranks.h>

typedef int32_t piper_partition_by;
#define PIPER_BY_COST 0  /* piper_region_info.cost */
#define PIPER_BY_FLOPS 1 /* of the forward pass */
#define PIPER_BY_BYTES 2 /* of parameters, and of what is kept for the backward pass */
#define PIPER_BY_COUNT 3 /* equally many units */
#define PIPER_BY_BOUNDARIES 4

/* How regions are cut into consecutive parts, between the units that piper_graph_api.units tells of
 * `over`: the costliest part is as cheap as it can be; among such cuts the sum of squares is
 * smallest, and then earlier parts are the smaller ones. Since 0.3. */
typedef struct piper_partition {
  uint32_t struct_size;
  piper_partition_by by;
  uint32_t parts; /* not with PIPER_BY_BOUNDARIES */
  uint32_t reserved;
  piper_str over;        /* a tag of the model; empty: a unit is a region */
  piper_span boundaries; /* of uint32_t: the first unit of each part but the first, ascending */
} piper_partition;

/* Every region that `filter` selects gets tag `name` with that index; with a partition, the parts
 * that it cuts them into get the indices 0, 1, ... A partition is made at once: `filter` then
 * selects by the model's own tags. */
typedef struct piper_tag {
  uint32_t struct_size;
  uint32_t index;
  piper_str name;
  const piper_filter *filter;
  const piper_partition *partition; /* NULL: none. Since 0.3. */
} piper_tag;

/* The batch is cut along `dim` into n parts, the remainder to the earlier ones. Claim
 * PIPER_CLAIM_SPLIT first. */
typedef struct piper_split {
  uint32_t struct_size;
  uint32_t n;
  piper_str dim; /* empty: "MB" */
  const piper_filter *filter;
} piper_split;

/* The backward pass becomes two: one for the gradients of inputs, one for those of weights. */
typedef struct piper_split_backward {
  uint32_t struct_size;
  uint32_t reserved;
  const piper_filter *filter;
} piper_split_backward;

/* Who executes: the one group of `ranks`. */
typedef struct piper_place {
  uint32_t struct_size;
  uint32_t reserved;
  const piper_filter *filter;
  piper_ranks ranks;
  piper_str stream; /* empty: "compute" */
} piper_place;

#define PIPER_REPLICATE_PREFETCH 1u /* bits of piper_replicate.present */
#define PIPER_REPLICATE_BUCKET_BYTES 2u
#define PIPER_SHARD_OPTIMIZER 1u /* bits of piper_replicate.shard */
#define PIPER_SHARD_GRADS 2u
#define PIPER_SHARD_PARAMS 4u
#define PIPER_EACH_CHAIN 1 /* values of keep_gathered and reduce; 0 means this one */
#define PIPER_EACH_STEP 2

/* Parameters of the selected chunks live on all ranks of the group that executes them. */
typedef struct piper_replicate {
  uint32_t struct_size;
  uint32_t present;
  const piper_filter *filter;
  piper_ranks ranks;
  piper_str gather_stream; /* empty: "gather" */
  piper_str reduce_stream; /* empty: "reduce" */
  uint64_t bucket_bytes;
  uint32_t shard;
  uint32_t prefetch;
  int32_t keep_gathered;
  int32_t reduce;
} piper_replicate;

/* The forward of the selected regions keeps nothing but its inputs, and runs again right before the
 * backward. What one directive selects is recomputed layer by layer. Since 0.3. */
typedef struct piper_recompute {
  uint32_t struct_size;
  uint32_t reserved;
  const piper_filter *filter;
} piper_recompute;

typedef int32_t piper_shard_kind;
#define PIPER_SHARD_EXPERTS 1 /* whole experts, contiguous blocks; all-to-all before and after */

typedef struct piper_shard {
  uint32_t struct_size;
  piper_shard_kind kind;
  const piper_filter *filter;
  piper_ranks ranks;
  piper_str stream; /* empty: "expert" */
} piper_shard;

/* "Directives of this kind are mine." Two exclusive claims on one thing are refused, naming both
 * plugins. */
typedef int32_t piper_claim_kind;
#define PIPER_CLAIM_AXIS \
  0 /* placing or replicating along a mesh axis, which the manifest lists; exclusive */
#define PIPER_CLAIM_SPLIT 1 /* cutting the batch; exclusive */
#define PIPER_CLAIM_ORDER 2 /* the order of each rank's compute; exclusive */

typedef struct piper_claim {
  uint32_t struct_size;
  piper_claim_kind kind;
  piper_str name; /* the axis; else empty */
} piper_claim;

/* Every function is [plan]. PIPER_INVALID: a NULL, a struct_size below the first version's, an
 * unknown enum value or bit; PIPER_STALE: a region or family that is not of this plan. */
typedef struct piper_directive_api {
  uint32_t struct_size;
  uint32_t reserved;
  piper_code(PIPER_CALL *claim)(piper_ctx *ctx, const piper_claim *claim);
  piper_code(PIPER_CALL *tag)(piper_ctx *ctx, const piper_tag *tag);
  piper_code(PIPER_CALL *split)(piper_ctx *ctx, const piper_split *split);
  piper_code(PIPER_CALL *split_backward)(piper_ctx *ctx, const piper_split_backward *split);
  piper_code(PIPER_CALL *place)(piper_ctx *ctx, const piper_place *place);
  piper_code(PIPER_CALL *replicate)(piper_ctx *ctx, const piper_replicate *replicate);
  piper_code(PIPER_CALL *shard)(piper_ctx *ctx, const piper_shard *shard);
  piper_code(PIPER_CALL *order)(piper_ctx *ctx, const piper_order *order);
  /* The order of the compute stream of the one group of `ranks`: `count` actions, `stride` bytes
   * apart and at least one. One chain a group; it names each computation of the group once. What it
   * leaves out is placed by cost, with a warning. */
  piper_code(PIPER_CALL *order_chain)(piper_ctx *ctx, piper_ranks ranks,
                                      const piper_action *actions, uint64_t count, uint64_t stride);
  piper_code(PIPER_CALL *recompute)(piper_ctx *ctx, const piper_recompute *recompute); /* 0.3 */
} piper_directive_api;

#endif
