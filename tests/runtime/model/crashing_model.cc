// A model whose function ends the process.
#include <cstdlib>

#include "runtime/model/build.h"

static void build(piper::Build&) {
  std::abort();
}

PIPER_MODEL("crashing", build)
