// libFuzzer: what is accepted prints as the text it came from, and is a model that verify accepts.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/ir/model_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = piper::parse_model_graph(text, "fuzz");
  if (model) {
    PIPER_CHECK(piper::print(*model) == text, "a text that is not what it prints as was accepted");
    PIPER_CHECK(piper::verify(*model).has_value(), "a model that does not hold was accepted");
  }
  return 0;
}
