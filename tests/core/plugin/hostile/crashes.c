// Crashes, ends the process or takes its time, as its strategy's environment says; each where a
// real plugin would.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hostile.h"

static const char* wanted(void) {
  const char* what = getenv("HOSTILE_DOES");
  return what == NULL ? "" : what;
}

static int wants(const char* what) {
  return strcmp(wanted(), what) == 0;
}

static int* volatile nowhere;

static int divide(volatile int a, volatile int b) {
  return a / b;
}

// Deeper until the stack is used up.
static int deeper(volatile char* before) {
  volatile char here[4096];
  here[0] = before == NULL ? 0 : before[0];
  return getppid() == -1 ? 0 : deeper(here) + here[0];
}

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  piper_ranks ranks;
  (void)self;
  if (wants("writes to NULL")) {
    *nowhere = 1;
  } else if (wants("divides by zero")) {
    return divide(1, 0);
  } else if (wants("aborts")) {
    abort();
  } else if (wants("recurses")) {
    return deeper(NULL);
  } else if (wants("sends itself a signal")) {
    raise(SIGBUS);
  } else if (wants("exits")) {
    puts("printed before the exit");
    exit(3);
  } else if (wants("exits quickly")) {
    quick_exit(0);
  } else if (wants("sleeps")) {
    sleep(6);
  } else if (wants("prints")) {
    puts("printed by a plugin");
  }
  const piper_code code = all_ranks(ctx, &ranks);
  return code != PIPER_OK ? code : place(ctx, ranks);
}

__attribute__((constructor)) static void construct(void) {
  if (wants("crashes while it is loaded")) {
    abort();
  }
}

ENTRY(plan)
