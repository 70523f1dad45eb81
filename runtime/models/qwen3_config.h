// The sizes of a Qwen3 model, from [model], a published flavor or a Hugging Face config.json. No
// LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"

namespace piper {

struct Qwen3Config {
  std::int64_t layers = 4, dim = 128, heads = 4, kv_heads = 4, head_dim = 32, ffn = 352,
               vocab = 257;
  bool tied = false;
  double rope_theta = 10000, norm_eps = 1e-6, init_deviation = 0.02;
  double dropout = 0;
  bool hugging_face_float64 = false;  // from a config.json: see hugging_face_float64.h

  std::int64_t parameters() const;  // a tied embedding counts once
  bool operator==(const Qwen3Config&) const = default;
};

// "debug", "0.6b", ... in order of size.
std::vector<std::string> qwen3_flavors();

// Keys of [model] win over config.json and the flavor, which must not contradict each other. Where
// neither is given: heads of 64 elements, kv_heads = heads, ffn = 8/3 dim in steps of 16, a
// vocabulary for bytes. Reports every broken rule.
Expected<Qwen3Config> resolve_qwen3(const Config& config);

}  // namespace piper
