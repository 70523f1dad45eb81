// Which names a directive may give to the stream of its collectives: not those that core uses for
// itself ("compute", "scalar", "input", and "send 0>1", "recv 0>1" for each pair of places), since
// what a stream runs in which order is up to who it belongs to.
#pragma once

#include <string>

#include "core/base/diagnostic.h"
#include "core/directives/claim.h"

namespace piper {

// Error directive.stream. `option` is the directive's name for it: "reduce_stream".
Status check_stream(const std::string& name, const std::string& option, const Provenance& from,
                    const std::string& what);

}  // namespace piper
