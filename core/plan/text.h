// The text of a plan, one line an item:
//
//     piper-plan 1
//     train world 2 microbatches 2 rows 8
//     tag 0 PP
//     origin 0 "interleaved1f1b" at "job.toml":12:1
//     nodes 0*24
//     chunk 0 {PP=0} program 0 regions (0, 1) buckets (0) inputs (%0) outputs (%3) flops 9r saved r
//     bucket 0 float32 parameters (0, 1) elements 4096 group 0 homes (0)
//     communicator 0 point_to_point "send 0>1" 0 > 1
//     communicator 1 collective "scalar" ranks (0, 1)
//     program 0 ranks (0) buckets (0)
//       arena 256
//       buffer 0 parameter b0 16384
//       buffer 1 activation m0 %3 32r from 1 to 9 at 128
//       stream 0 compute "compute"
//         0 forward         n4 c0 m0          wait 3 ^7  read 0  write 1  free 2  records
//
// n = node, c = chunk, m = micro-batch, % = value, b = bucket; numbers after wait are
// tasks of the program (^: of the period before), those after read, write and free its buffers; `r`
// is the rows of the micro-batch.
//
// Where they apply: a chunk has `microbatches (0, 1)` after its program and `experts 2` before its
// flops; a bucket ends in `experts 2 zero 3 shards 4 keep_gathered step reduce step`, a collective
// communicator in `groups of 2`. m counts chains for gathers, reduce-scatters and what they move.
//
// A computation of an overlap group has `overlap 5` after its micro-batch.
//
// Lines from the first that begins with # on are not part of it (`piper plan` says there what ranks
// hold at most).
//
// What a plan's form allows prints in exactly one way, and only that is read back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace piper {

// The name of a chunk's tag, `PP`; `tag7` where neither the plan nor the model knows it.
std::string tag_name(const Plan& plan, const ModelGraph& model, TagId tag);

// `PP=0 layer=3`, or `chunk 3` for a chunk without tags or one that is not there.
std::string tags_of(const Plan& plan, const ModelGraph& model, ChunkId chunk);

// `0..3, 7`.
std::string ranges(const std::vector<std::uint32_t>& sorted);

}  // namespace piper
