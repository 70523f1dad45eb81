#include "runtime/model/find_model.h"

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

#include "runtime/models/models.h"

namespace piper {
namespace {

// Functions of a library outlive every model, so it stays open until the process ends.
Expected<boost::dll::shared_library*> open_forever(const std::filesystem::path& path,
                                                   const Location& where) {
  static std::mutex mutex;
  static auto& opened = *new std::map<std::filesystem::path, boost::dll::shared_library>;
  const std::lock_guard lock(mutex);
  if (const auto found = opened.find(path); found != opened.end()) {
    return &found->second;
  }
  std::error_code failure;
  boost::dll::shared_library library;
  library.load(path, failure, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (failure) {
    return fail(error("model.library", "cannot open model library: " + failure.message(), where));
  }
  return &opened.emplace(path, std::move(library)).first->second;
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
  PIPER_ASSIGN(boost::dll::shared_library * library, open_forever(path, where));
  if (!library->has("piper_model_name") || !library->has("piper_model_build")) {
    return fail(error("model.library",
                      "'" + config.model.library +
                          "' registers no model; expected PIPER_MODEL(name, function) in it",
                      where));
  }
  const std::string name = library->get<const char*()>("piper_model_name")();
  if (name != config.model.name) {
    return fail(error("model.name",
                      "expected '" + name + "', the model of '" + config.model.library +
                          "', got '" + config.model.name + "'",
                      config.where("model.name")));
  }
  return &library->get<void(Build&)>("piper_model_build");
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

}  // namespace piper
