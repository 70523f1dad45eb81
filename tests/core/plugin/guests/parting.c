/* Counts the calls of its shutdown in the environment. */
#include <stdio.h>
#include <stdlib.h>

#include "../hostile/hostile.h"

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  (void)self;
  (void)ctx;
  return PIPER_OK;
}

static void PIPER_CALL shutdown_once(void* self) {
  static int calls;
  char text[16];
  (void)self;
  snprintf(text, sizeof(text), "%d", ++calls);
  setenv("PIPER_TEST_SHUTDOWNS", text, 1);
}

PIPER_EXPORT const piper_plugin* PIPER_CALL PIPER_ENTRY(const piper_base* b, piper_ctx* c) {
  piper_plugin* result = good_table(b, c, plan);
  result->shutdown = shutdown_once;
  return result;
}
