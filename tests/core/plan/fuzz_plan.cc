// libFuzzer: what is accepted of a plan of the toy model prints as the text it came from.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/plan/plan.h"
#include "tests/support/toy_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const piper::ModelGraph model = piper::test::toy_model({.layers = 2});
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = piper::parse_plan(text, model, "fuzz");
  PIPER_CHECK(!plan || piper::print(*plan, model) == text,
              "a text that is not what it prints as was accepted");
  return 0;
}
