// send and recv: one value, or the gradient of one, from member i of a program to member i of
// another.
//
//   before: the sender's buffer has the value
//   after:  the receiver's has a copy, in the arena where the plan gives it a place there
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_send(const Site& site);
MadeTask make_recv(const Site& site);

}  // namespace piper
