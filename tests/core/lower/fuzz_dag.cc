// libFuzzer: what is accepted of a DAG of the toy model prints as the text it came from.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/lower/dag_text.h"
#include "tests/support/toy_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static piper::ModelGraph model = [] {
    piper::ModelGraph toy = piper::test::toy_model({.layers = 2});
    toy.intern_tag("PP");
    return toy;
  }();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto dag = piper::parse_dag(text, model, "fuzz");
  PIPER_CHECK(!dag || piper::print(*dag, model) == text,
              "a text that is not what it prints as was accepted");
  return 0;
}
