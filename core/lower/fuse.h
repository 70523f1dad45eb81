// Puts parameters in buckets and fuses the regions that no directive and no bucket distinguishes
// into chunks.
//
//     region 0 PP=0 @0, region 1 PP=0 @0, region 2 PP=1 @1   ->   chunk 0 {0, 1} @0, chunk 1 {2} @1
//
// Runs after the last directive, before micro-batches are expanded. Independent branches stay
// apart: a region joins a chunk only when all that it reads comes from there (or from the data
// loader). What was fused is then cut where recomputation begins and ends, and before a second use
// of a parameter, so that a gradient's contributions add up in one order however it is cut; buckets
// see the whole.
#pragma once

#include "core/directives/annotated.h"
#include "core/lower/dag.h"

namespace piper {

// The tables of a DAG (programs, chunks, buckets) without nodes. Errors: place.group_size (places
// joined by data differ in size).
Expected<Dag> fuse(const Annotated& annotated, const Config& config, Plan::Kind kind);

}  // namespace piper
