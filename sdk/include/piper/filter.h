/* Selecting chunks: all conditions hold, the pass is one of `passes`, and the region is one of
 * `regions`.
 *
 * What a filter selects is checked when directives are applied: an unknown tag, or nothing
 * selected, is then an error at the plugin's [[strategy]] table. Communication is never selected;
 * it follows from the data that chunks exchange. */
#ifndef PIPER_FILTER_H
#define PIPER_FILTER_H

#include <piper/graph.h>

typedef uint32_t piper_pass;
#define PIPER_FORWARD 0
#define PIPER_BACKWARD 1
#define PIPER_BACKWARD_INPUT 2
#define PIPER_BACKWARD_WEIGHT 3
#define PIPER_UPDATE 4
#define PIPER_PASS_BIT(pass) (1u << (uint32_t)(pass))

typedef int32_t piper_condition_kind;
#define PIPER_EQUALS 0   /* values: one */
#define PIPER_IN_SET 1   /* values: any number */
#define PIPER_IN_RANGE 2 /* values: first and last, both included */
#define PIPER_PRESENT 3  /* no values */
#define PIPER_IS_ABSENT 4

typedef struct piper_condition {
  uint32_t struct_size;
  piper_condition_kind kind;
  piper_str tag;     /* a tag's name, or "MB", the micro-batch */
  piper_span values; /* of uint32_t */
} piper_condition;

typedef struct piper_filter {
  uint32_t struct_size;
  uint32_t passes;       /* PIPER_PASS_BITs; 0: any */
  piper_span conditions; /* of piper_condition; none: everything */
  piper_span regions;    /* of piper_region; none: any */
} piper_filter;

#endif
