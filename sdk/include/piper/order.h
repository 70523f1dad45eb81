/* The order of compute, in the general form and in the packed one. */
#ifndef PIPER_ORDER_H
#define PIPER_ORDER_H

#include <piper/filter.h>

/* All of one group runs before all of the next, on each place's compute stream. A group of several
 * filters is an overlap group: its members are interleaved so that the communication of one hides
 * behind the compute of another. */
typedef struct piper_order_group {
  uint32_t struct_size;
  uint32_t reserved;
  piper_span filters; /* of piper_filter */
} piper_order_group;

typedef struct piper_order {
  uint32_t struct_size;
  uint32_t reserved;
  piper_span groups; /* of piper_order_group */
} piper_order;

/* One action of an order_chain. `stage` is the index of tag "PP". Actions of equal, nonzero
 * `overlap` that follow each other are an overlap group. Frozen; order_chain takes a stride. */
typedef struct piper_action {
  uint32_t stage;
  uint32_t microbatch;
  piper_pass pass;
  uint32_t overlap;
} piper_action;

#endif
