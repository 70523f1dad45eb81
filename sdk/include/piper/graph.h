/* What `plan` sees of the job: the captured model, the mesh and the number of micro-batches, each
 * in one call. */
#ifndef PIPER_GRAPH_H
#define PIPER_GRAPH_H

#include <piper/base.h>

/* A region of the model: the smallest piece that can run alone. */
typedef struct piper_region {
  uint64_t bits;
} piper_region;

/* A number that depends on the rows of a micro-batch: per_row * rows + fixed. Frozen. */
typedef struct piper_affine {
  int64_t per_row;
  int64_t fixed;
} piper_affine;

/* Tag number `name` (an index into piper_graph.tag_names) has index `index`. Frozen. */
typedef struct piper_tag_value {
  uint32_t name;
  uint32_t index;
} piper_tag_value;

typedef int32_t piper_dtype;
#define PIPER_FLOAT32 0
#define PIPER_FLOAT64 1
#define PIPER_BFLOAT16 2
#define PIPER_INT64 3
#define PIPER_BOOLEAN 4

#define PIPER_NONE 0xffffffffu /* "no such thing", where an index is expected */

typedef struct piper_region_info {
  uint32_t struct_size;
  uint32_t reserved;
  piper_region region;
  piper_span tags;          /* of piper_tag_value; outermost first */
  piper_span parameters;    /* of uint32_t, into piper_graph.parameters; in order of first use */
  piper_span inputs;        /* of uint32_t, into piper_graph.values */
  piper_span outputs;       /* of uint32_t, into piper_graph.values */
  piper_affine flops;       /* of the forward pass */
  piper_affine saved_bytes; /* kept from the forward to the backward pass */
  piper_affine transient_bytes; /* largest extra memory while the forward runs */
  piper_where where;            /* the model's source line */
  /* What its forward and backward take together for a largest micro-batch, under the job's cost
   * model. To compare regions with: it counts no unit. Since 0.2. */
  int64_t cost;
} piper_region_info;

typedef struct piper_parameter_info {
  uint32_t struct_size;
  piper_dtype dtype;
  piper_str name;
  piper_span shape; /* of int64_t */
  int64_t bytes;
  uint32_t frozen; /* 0 or 1: never changed by training */
  uint32_t reserved;
  piper_where where;
} piper_parameter_info;

typedef struct piper_value_info {
  uint32_t struct_size;
  piper_dtype dtype;
  piper_str name;   /* of inputs of the model; empty for computed values */
  piper_span shape; /* of piper_affine */
  piper_affine bytes;
  uint32_t
      producer; /* the number of the region that computes it; PIPER_NONE: an input of the model */
  uint32_t reserved;
} piper_value_info;

/* Regions come in an order in which they can run: producers before consumers. */
typedef struct piper_graph {
  uint32_t struct_size;
  uint32_t loss;   /* into values: the sum of token losses */
  uint32_t labels; /* into values: the input that holds the labels; PIPER_NONE: none */
  uint32_t reserved;
  piper_str name;
  piper_span tag_names;  /* of piper_str */
  piper_span parameters; /* of piper_parameter_info */
  piper_span values;     /* of piper_value_info */
  piper_span regions;    /* of piper_region_info */
} piper_graph;

/* What stays together where a model is cut: a run of regions with one index of a tag. A region
 * without the tag goes with the unit before it, or, before the first, with the first. Where none
 * has the tag, a unit is a region. Frozen. Since 0.3. */
typedef struct piper_unit {
  piper_region first; /* it ends where the next one begins */
  uint32_t index;     /* of the tag, or the region's number */
  uint32_t reserved;
} piper_unit;

typedef struct piper_axis {
  uint32_t struct_size;
  uint32_t size;
  piper_str name;
  piper_where where; /* of its key in [mesh] */
} piper_axis;

typedef struct piper_job {
  uint32_t struct_size;
  uint32_t world;        /* ranks */
  uint32_t microbatches; /* of each data-parallel rank's rows; at least 1 */
  uint32_t reserved;
  int64_t rows;        /* of the largest micro-batch: where to evaluate a piper_affine */
  int64_t global_rows; /* of a step */
  piper_span axes;     /* of piper_axis, outermost first; always has "pp" and "dp" */
  piper_where microbatches_where;
} piper_job;

typedef struct piper_graph_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Fill *out, whose struct_size the caller has set, and set its struct_size to what was filled:
   * ask PIPER_HAS afterwards. Cheap; the spans point into the host. [plan] PIPER_INVALID: out is
   * NULL, or its struct_size is below that of the struct's first version. */
  piper_code(PIPER_CALL *graph)(piper_ctx *ctx, piper_graph *out);
  piper_code(PIPER_CALL *job)(piper_ctx *ctx, piper_job *out);
  /* The units of tag `over`, as a span of piper_unit: what a piper_partition over it cuts between.
   * [plan] PIPER_INVALID: out is NULL. Since 0.3. */
  piper_code(PIPER_CALL *units)(piper_ctx *ctx, piper_str over, piper_span *out);
} piper_graph_api;

#endif
