#include "runtime/models/models.h"

#include "runtime/models/qwen3.h"

namespace piper {
namespace {

struct BuiltIn {
  const char* name;
  ModelFunction function;
};

constexpr BuiltIn kModels[] = {{"qwen3", build_qwen3}};

}  // namespace

ModelFunction built_in_model(std::string_view name) {
  for (const BuiltIn& model : kModels) {
    if (model.name == name) {
      return model.function;
    }
  }
  return nullptr;
}

std::vector<std::string> built_in_models() {
  std::vector<std::string> names;
  for (const BuiltIn& model : kModels) {
    names.emplace_back(model.name);
  }
  return names;
}

}  // namespace piper
