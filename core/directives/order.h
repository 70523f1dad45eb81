// Temporal order between sub-DAGs on the compute stream of each place.
//     order [{PP=0, MB=0, PASS=F}], [{PP=0, MB=1, PASS=F}]     ->   0F0 before 0F1, wherever both
//     run on one place order_chain ranks=[0, 2] 0F0 0F1 0B0 ...                 ->   a total order
//     of these actions there
// Runs last. Only recorded here: lowering turns it into edges when micro-batches are expanded. A
// chain's stage is the index of tag PP; its pieces expand in place, backward ones reversed. Errors:
// order.groups (fewer than two), order.chain (no place with these ranks), and, at expansion,
// order.action (a stage, micro-batch or pass that this place does not run), order.twice,
// order.cycle.
#pragma once

#include "core/directives/annotated.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const OrderDirective& order, const Provenance& from,
                          std::uint32_t origin);
Expected<Annotated> apply(Annotated dag, const OrderChainDirective& chain, const Provenance& from,
                          std::uint32_t origin);

}  // namespace piper
