#include "runtime/tasks/rank.h"

#include "core/base/diagnostic.h"

namespace piper {

BucketState& Rank::bucket(BucketId id) const {
  PIPER_CHECK(index(id) < buckets.size() && buckets[index(id)],
              "rank " + std::to_string(number) + " has no bucket " + std::to_string(index(id)));
  return *buckets[index(id)];
}

}  // namespace piper
