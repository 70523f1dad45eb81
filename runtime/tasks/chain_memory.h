// What a computation does before it touches parameters of which the rank keeps a part: it points
// them, and their gradients, at the memory of the chain of uses that it is in.
//
//   before: `gathered` holds the whole bucket; `full_gradient` does where another computation of
//           the chain has come first
//   after:  the model's parameters are in `gathered`; their gradients add to `full_gradient`, which
//           is zero where this computation is the chain's first
//
// Buffers that other buckets do without are not there, so this looks at no policy. A gathered
// bucket takes its memory back when the plan frees it (GatheredCell::clear); a reduce-scatter frees a full
// gradient beside computations of the next chain, which have lent its storage other memory by then
// or will.
#pragma once

#include <vector>

#include "runtime/tasks/site.h"

namespace piper {

class ChainMemory {
 public:
  explicit ChainMemory(const Site& site);

  // On the thread of the compute stream.
  void enter(const Launch& launch) const;

 private:
  struct Gradient {
    TensorCell* cell;
    LentStorage* lent;
    Memory memory;
    bool first;  // of its chain
  };
  std::vector<const GatheredCell*> gathered_;
  std::vector<Gradient> gradients_;
};

}  // namespace piper
