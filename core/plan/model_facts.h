// What follows from a model and how it is cut into chunks, and stands in no table of a plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan.h"

namespace piper {

struct ModelFacts {
  // By ValueId: it leads to the loss, and depends on something that is trained.
  std::vector<bool> wants_gradient;
  // By ValueId: the chunks that compute it, ascending, one a place; none for inputs of the model.
  std::vector<std::vector<ChunkId>> makers;
};
ModelFacts find_facts(std::span<const Chunk> chunks, const ModelGraph& model);

// Does the chunk run this micro-batch?
bool runs_microbatch(const Chunk& chunk, std::uint32_t microbatch);

}  // namespace piper
