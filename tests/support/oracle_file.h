// Where the reference values of another implementation are: tests/data/oracles/README.md.
#pragma once

#include <ATen/Version.h>

#include <string>

namespace piper::testing {

// The file `name` of tests/data/oracles/ORACLE. Hugging Face's results are of one kind of
// processor: they are those of this one's.
inline std::string oracle_file(const std::string& oracle, const std::string& name) {
  const bool result =
      name == "expected.json" || name == "grads.safetensors" || name == "adamw.safetensors";
  const bool wide = at::get_cpu_capability() == "AVX512";
  return PIPER_SOURCE_DIR "/tests/data/oracles/" + oracle + (result && !wide ? "/avx2/" : "/") +
         name;
}

}  // namespace piper::testing
