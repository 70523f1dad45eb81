// A model whose function throws.
#include <stdexcept>

#include "runtime/model/build.h"

static void build(piper::Build&) {
  throw std::runtime_error("the weights do not fit\nmore of it");
}

PIPER_MODEL("throwing", build)
