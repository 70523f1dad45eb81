#include "core/plugin/loader.h"

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <utility>

#include "core/base/foreign_code.h"
#include "core/base/shared_library.h"
#include "core/plugin/abi.h"

namespace piper {

class LoadedPlugin {
 public:
  dev_t device = 0;
  ino_t inode = 0;
  std::string file;
  std::optional<SharedLibrary> library;
  piper_ctx ctx;
  const piper_plugin* table = nullptr;
  Diagnostics failure;  // of the entry, which is called once
  bool shut_down = false;
};

namespace {

constexpr std::size_t kPluginSize = PIPER_FIRST_SIZE(piper_plugin, self);

// Never destroyed: neither the libraries nor their contexts may go while the process lives.
std::vector<LoadedPlugin*>& loaded_plugins() {
  static auto* const plugins = new std::vector<LoadedPlugin*>;
  return *plugins;
}

// Between begin and end, the plugin may call the host from this thread.
void begin(piper_ctx& ctx, piper_ctx::State state) {
  ctx.errors.clear();
  ctx.warnings.clear();
  ctx.misused = false;
  ctx.failed = false;
  ctx.thread = std::this_thread::get_id();
  ctx.state = state;
}

void end(piper_ctx& ctx) {
  ctx.state = piper_ctx::State::idle;
  if (ctx.misused) {
    ctx.refuse(PIPER_WRONG_STATE, "plugin.wrong_state",
               "calls the host outside of plan, or on a thread of its own");
  }
  if (ctx.failed) {
    ctx.refuse(PIPER_INTERNAL, "plugin.host_failed", "the host ran out of memory");
  }
}

ForeignCode::Names code_of(const std::string& plugin, const char* function) {
  return {"plugin '" + plugin + "'", function, "plugin.crashed", "plugin.exited"};
}

// Calls `body`, which calls the plugin. A plugin that is not built with the SDK's wrapper may let
// an exception out.
template <typename Body>
void call(piper_ctx& ctx, const char* function, Body&& body) {
  const ForeignCode foreign(code_of(ctx.plugin, function));
  try {
    body();
  } catch (const std::exception& thrown) {
    ctx.refuse(PIPER_ERROR, "plugin.exception",
               std::string("an exception left ") + function + ": " + thrown.what());
  } catch (...) {
    ctx.refuse(PIPER_ERROR, "plugin.exception", std::string("an exception left ") + function);
  }
}

void check_table(piper_ctx& ctx, const piper_plugin* table, const Manifest& manifest) {
  if (table->struct_size < kPluginSize) {
    ctx.refuse(PIPER_INVALID, "plugin.short_struct",
               "expected a piper_plugin of at least " + std::to_string(kPluginSize) +
                   " bytes, got " + std::to_string(table->struct_size));
    return;
  }
  std::string id;
  std::string version;
  if (!ctx.read("the id in its table", table->id, id) ||
      !ctx.read("the version in its table", table->version, version)) {
    return;
  }
  if (id != manifest.id || version != manifest.version ||
      table->min_host_minor != manifest.abi_minor) {
    ctx.refuse(PIPER_INVALID, "plugin.mismatch",
               "the manifest says " + manifest.id + " " + manifest.version + " for plugin ABI " +
                   to_string(AbiVersion{manifest.abi_major, manifest.abi_minor}) +
                   ", the library says " + id + " " + version + " for " +
                   to_string(AbiVersion{PIPER_ABI_MAJOR, table->min_host_minor}));
  }
  auto minor =
      negotiate(host_abi(), {PIPER_ABI_MAJOR, table->min_host_minor}, table->built_with_minor);
  if (!minor) {
    ctx.refuse(PIPER_INVALID, std::move(minor.error()));
  } else if (*minor != table->abi_minor) {
    ctx.refuse(PIPER_INVALID, "plugin.abi_minor",
               "expected the negotiated minor " + std::to_string(*minor) + " in its table, got " +
                   std::to_string(table->abi_minor));
  }
  if (table->plan == nullptr) {
    ctx.refuse(PIPER_INVALID, "plugin.null_slot",
               "expected a function 'plan' in its table, got NULL");
  }
}

Status open(LoadedPlugin& plugin, const Manifest& manifest) {
  const ForeignCode foreign(code_of(manifest.id, "static constructors"));
  auto library = SharedLibrary::open(plugin.file);
  if (!library) {
    Diagnostic wrong =
        error("plugin.load_failed", manifest.id + ": cannot be loaded: " + library.error().why);
    if (!library.error().symbol.empty()) {
      wrong.note(
          "link the plugin to the library that has it, or leave it out: Piper offers no "
          "symbols");
    }
    return fail(std::move(wrong));
  }
  plugin.library = *library;
  return {};
}

void enter(LoadedPlugin& plugin, const Manifest& manifest) {
  piper_ctx& ctx = plugin.ctx;
  const auto entry =
      plugin.library->find<const piper_plugin*(const piper_base*, piper_ctx*)>(PIPER_ENTRY_NAME);
  if (entry == nullptr) {
    plugin.failure = {error("plugin.no_entry", manifest.id + ": the library exports no " +
                                                   std::string(PIPER_ENTRY_NAME))};
    return;
  }
  begin(ctx, piper_ctx::State::scanning);
  const piper_plugin* table = nullptr;
  call(ctx, "the entry", [&] { table = entry(&base_api(), &ctx); });
  if (table == nullptr && ctx.errors.empty()) {
    ctx.refuse(PIPER_ERROR, "plugin.no_table", "its entry returned no table and reported nothing");
  } else if (table != nullptr) {
    check_table(ctx, table, manifest);
  }
  end(ctx);
  if (!ctx.errors.empty()) {
    plugin.failure = ctx.errors;
  } else {
    plugin.table = table;
  }
}

Expected<LoadedPlugin*> result(LoadedPlugin* plugin) {
  if (!plugin->failure.empty()) {
    return fail(plugin->failure);
  }
  return plugin;
}

}  // namespace

Expected<LoadedPlugin*> load_plugin(const PluginInfo& info) {
  struct stat status {};
  if (::stat(info.file.c_str(), &status) != 0) {
    return fail(error("plugin.unreadable", info.manifest.id + ": the file has gone"));
  }
  for (LoadedPlugin* known : loaded_plugins()) {
    if (known->device == status.st_dev && known->inode == status.st_ino) {
      return result(known);
    }
  }
  auto plugin = std::make_unique<LoadedPlugin>();
  plugin->device = status.st_dev;
  plugin->inode = status.st_ino;
  plugin->file = info.file;
  plugin->ctx.plugin = info.manifest.id;
  PIPER_TRY(open(*plugin, info.manifest));
  // From here on the library is mapped, so the inode stays its own.
  loaded_plugins().push_back(plugin.release());
  enter(*loaded_plugins().back(), info.manifest);
  return result(loaded_plugins().back());
}

Expected<Proposal> call_plan(LoadedPlugin& plugin, const ResolvedStrategy& strategy,
                             const Config& config, const ModelGraph& model,
                             const std::vector<std::int64_t>& costs, Diagnostics& warnings) {
  piper_ctx& ctx = plugin.ctx;
  ++ctx.generation;
  JobView view(config, model, costs, strategy, ctx.generation);
  ctx.view = &view;
  const StrategyConfig& config_of = *strategy.config;
  ctx.proposal = {};  // of an earlier call that failed, nothing is left
  ctx.proposal.from = {strategy.plugin.manifest.id, config_of.where,
                       config_of.name == config_of.plugin ? "" : config_of.name};
  begin(ctx, piper_ctx::State::planning);
  piper_code code = PIPER_OK;
  call(ctx, "plan", [&] { code = plugin.table->plan(plugin.table->self, &ctx); });
  end(ctx);
  if (code != PIPER_OK && ctx.errors.empty()) {
    ctx.refuse(PIPER_ERROR, "plugin.no_diagnostic",
               "plan failed with code " + std::to_string(code) +
                   " and reported nothing, which is a fault of the plugin");
  }
  ctx.view = nullptr;
  if (!ctx.errors.empty()) {
    return fail(std::exchange(ctx.errors, {}));
  }
  warnings.insert(warnings.end(), ctx.warnings.begin(), ctx.warnings.end());
  return std::exchange(ctx.proposal, {});
}

void shut_down_loaded() {
  std::vector<LoadedPlugin*>& plugins = loaded_plugins();
  for (auto plugin = plugins.rbegin(); plugin != plugins.rend(); ++plugin) {
    const piper_plugin* table = (*plugin)->table;
    if (table != nullptr && table->shutdown != nullptr &&
        !std::exchange((*plugin)->shut_down, true)) {
      call((*plugin)->ctx, "shutdown", [&] { table->shutdown(table->self); });
    }
  }
}

}  // namespace piper
