#include "runtime/tasks/rank.h"

namespace piper {

void Saved::clear() {
  inputs.clear();
  outputs.clear();
  loss.reset();
  ends.clear();
  unwanted.clear();
  rest.roots.clear();
  rest.gradients.clear();
}

}  // namespace piper
