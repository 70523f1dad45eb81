// Parameters in buckets: what is reduced, sharded, gathered and updated together.
#pragma once

#include <cstdint>
#include <vector>

#include "core/directives/annotated.h"
#include "core/lower/dag.h"

namespace piper {

// By RegionId: consecutive regions of one replication get one number until their parameters exceed
// its bucket_bytes, so that chunks never touch two blocks. A region alone may exceed it. Parameters
// that several places use do not count.
std::vector<std::uint32_t> bucket_blocks(const Annotated& annotated);

// Fills the buckets of a DAG whose chunks are known. A bucket is uniform in what uses it (so in
// homes), dtype, optimizer group and frozen flag. `whole`, by ChunkId: the first chunk of those
// that were cut apart and count as one user. Errors: shard.parameters, replicate.mixed
// (a tied parameter under two policies), shard.replicate (a family that mixes different experts).
Status make_buckets(Dag& dag, const Annotated& annotated, const Config& config,
                    const std::vector<ChunkId>& whole);

}  // namespace piper
