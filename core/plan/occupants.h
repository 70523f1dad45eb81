// Who had each byte of an arena last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace piper {

class Occupants {
 public:
  // From now on `who` has the bytes from `begin` up to `end`. Before that, calls `visit` with each
  // who had some of them; one may come more than once.
  template <typename Visit>
  void take(std::int64_t begin, std::int64_t end, BufferId who, Visit visit) {
    if (begin >= end) {
      return;
    }
    const auto first = std::partition_point(parts_.begin(), parts_.end(),
                                            [&](const Part& part) { return part.end <= begin; });
    auto last = first;
    for (; last != parts_.end() && last->begin < end; ++last) {
      visit(last->who);
    }
    if (last - first == 1 && first->begin == begin && first->end == end) {
      first->who = who;
      return;
    }
    // What is left of the first and of the last part.
    Part now[3];
    std::ptrdiff_t count = 0;
    if (first != last && first->begin < begin) {
      now[count++] = {first->begin, begin, first->who};
    }
    now[count++] = {begin, end, who};
    if (first != last && (last - 1)->end > end) {
      now[count++] = {end, (last - 1)->end, (last - 1)->who};
    }
    const auto at = parts_.erase(first, last);
    parts_.insert(at, now, now + count);
  }

 private:
  struct Part {
    std::int64_t begin = 0, end = 0;
    BufferId who{};
  };
  std::vector<Part> parts_;  // disjoint, ascending
};

}  // namespace piper
