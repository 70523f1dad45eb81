// The keys of a Hugging Face config.json of a Qwen3 model, and what Piper makes of each. A key that
// is not in this table may change what the model computes, so a folder that has it is refused.
// docs/hugging_face.md prints the table.
#pragma once

#include <span>
#include <string_view>

namespace piper {

enum class HfUse : std::uint8_t {
  used,     // read, and compared with what the job says
  only,     // this value (`only`, as JSON) or null; any other is refused
  ignored,  // changes neither loss nor gradients, or the job says it; `why` has the reason
};

struct HfKey {
  std::string_view name;
  HfUse use;
  std::string_view only;  // JSON, for HfUse::only
  std::string_view why;   // what it is for Piper, for the documentation
};

// In order of use, then of name.
std::span<const HfKey> hf_keys();

// Those inside of rope_parameters and rope_scaling.
std::span<const HfKey> hf_rope_keys();

// Null where the table has none of that name.
const HfKey* find_hf_key(std::span<const HfKey> table, std::string_view name);

}  // namespace piper
