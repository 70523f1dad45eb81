// Qwen3, dense (arXiv 2505.09388): a decoder-only transformer with RMSNorm, rotary positions,
// grouped-query attention with normalised queries and keys, SwiGLU, and an embedding that may be
// the output layer too. Parameters have Hugging Face's names, results its values.
//
// Tags: "embed", then "layer" 0, 1, ... with "attention" and "mlp" inside, then "head".
#pragma once

#include "runtime/model/build.h"

namespace piper {

void build_qwen3(Build& build);

}  // namespace piper
