#include "runtime/models/find_model.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <system_error>

#include "core/base/foreign_code.h"
#include "core/base/shared_library.h"
#include "runtime/model/library_code.h"
#include "runtime/models/models.h"

namespace piper {
namespace {

// The program opens the runtime for itself alone, so a model library that calls one of its
// functions and does not link it finds none. From here on what is loaded finds them, and
// LibTorch's.
void offer_runtime() {
  Dl_info runtime{};
  if (::dladdr(reinterpret_cast<const void*>(&find_model), &runtime) != 0) {
    ::dlopen(runtime.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  }
}

Diagnostic not_opened(const SharedLibrary::Failure& failure, const Location& where) {
  Diagnostic wrong = error("model.library", "cannot open the model library: " + failure.why, where);
  if (failure.symbol.starts_with("piper::")) {
    wrong.note("this Piper has no such function: build the library with its headers");
  } else if (failure.symbol.starts_with("at::") || failure.symbol.starts_with("c10::") ||
             failure.symbol.starts_with("torch::")) {
    wrong.note("link the library to LibTorch: -ltorch_cpu -lc10");
  } else if (!failure.symbol.empty()) {
    wrong.note("link the library to the one that has it");
  }
  return wrong;
}

// Functions of a library outlive every model, so it stays open until the process ends.
Expected<SharedLibrary> open_forever(const std::filesystem::path& path, const Config& config) {
  static std::mutex mutex;
  static auto& opened = *new std::map<std::filesystem::path, SharedLibrary>;
  const std::lock_guard lock(mutex);
  if (const auto found = opened.find(path); found != opened.end()) {
    return found->second;
  }
  const ForeignCode foreign(library_code(config, "static constructors"));
  auto library = SharedLibrary::open(path);
  if (!library && library.error().symbol.starts_with("piper::")) {
    offer_runtime();
    library = SharedLibrary::open(path);
  }
  if (!library) {
    return fail(not_opened(library.error(), config.where("model.library")));
  }
  return opened.emplace(path, *library).first->second;
}

Expected<ModelFunction> from_library(const Config& config) {
  const Location where = config.where("model.library");
  std::error_code failure;
  const std::filesystem::path path =
      std::filesystem::weakly_canonical(config.model.library, failure);
  if (failure || !std::filesystem::is_regular_file(path, failure)) {
    return fail(error("model.library",
                      "expected a shared library, got '" + config.model.library + "', which is " +
                          (std::filesystem::exists(path, failure) ? "no file" : "not there"),
                      where));
  }
  PIPER_ASSIGN(const SharedLibrary library, open_forever(path, config));
  const auto name_of = library.find<const char*()>("piper_model_name");
  const auto build = library.find<void(Build&)>("piper_model_build");
  if (name_of == nullptr || build == nullptr) {
    return fail(error("model.library",
                      "'" + config.model.library +
                          "' registers no model; expected PIPER_MODEL(name, function) in it",
                      where));
  }
  if (const std::string name = name_of(); name != config.model.name) {
    return fail(error("model.name",
                      "expected '" + name + "', the model of '" + config.model.library +
                          "', got '" + config.model.name + "'",
                      config.where("model.name")));
  }
  return build;
}

}  // namespace

Expected<ModelFunction> find_model(const Config& config) {
  if (!config.model.library.empty()) {
    return from_library(config);
  }
  if (const ModelFunction function = built_in_model(config.model.name)) {
    return function;
  }
  return fail(error(
      "model.name",
      "unknown model '" + config.model.name + "'" + suggest(config.model.name, built_in_models()),
      config.where("model.name")));
}

Expected<LiveModel> build_model(const Config& config, bool measure) {
  PIPER_ASSIGN(const ModelFunction function, find_model(config));
  return build_model(config, function, measure);
}

}  // namespace piper
