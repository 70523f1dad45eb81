// The plan of a system that does not overlap: each overlap group is one block.
#pragma once

#include "core/plan/plan.h"

namespace piper::test {

// The same computations, messages and orders; but a group starts when all that its members wait for
// is there, and whoever waits for a member waits for the last one. For groups without communication
// inside.
Plan with_atomic_pairs(Plan plan);

}  // namespace piper::test
