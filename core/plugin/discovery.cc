// Where plugins are looked for, and what is found there. No code of a plugin runs here.
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "core/plugin/abi.h"
#include "core/plugin/elf.h"
#include "core/plugin/host.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSection = "piper.manifest";

std::string mode_text(unsigned mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode & 07777U);
  return text.data();
}

// A plugin may do whatever the user may: what others can write, or own, is not loaded. `shared`: a
// folder above the plugin's own, where it is enough that others cannot replace what is not theirs.
Status check_trust(const std::string& path, bool shared) {
  const auto refuse = [&](const std::string& why) {
    return fail(error("plugin.unsafe", why + "; use --allow-unsafe-plugins to load it all the same",
                      Location{path, 0, 0}));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return fail(error("plugin.unreadable", std::strerror(errno), Location{path, 0, 0}));
  }
  if (shared) {
    const bool replaceable = (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
    return replaceable
               ? Status(refuse("expected a folder in which others cannot replace files, got mode " +
                               mode_text(status.st_mode)))
               : Status();
  }
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return refuse("expected it to belong to root or to user " + std::to_string(::geteuid()) +
                  ", got user " + std::to_string(status.st_uid));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse("expected that only its owner may write it, got mode " +
                  mode_text(status.st_mode));
  }
  return {};
}

// Of a plugin's folder: itself, then those above it.
Status check_folder(const std::string& folder) {
  PIPER_TRY(check_trust(folder, false));
  for (fs::path above = fs::path(folder).parent_path();; above = above.parent_path()) {
    PIPER_TRY(check_trust(above.string(), true));
    if (above == above.parent_path()) {
      return {};
    }
  }
}

// A link is trusted where both its own folder and that of the file are.
Status check_file(const PluginInfo& plugin, const Status& folder) {
  PIPER_TRY(folder);
  std::error_code failure;
  const fs::path target = fs::canonical(plugin.file, failure);
  if (!failure && target.parent_path() != fs::path(plugin.file).parent_path()) {
    PIPER_TRY(check_folder(target.parent_path().string()));
  }
  return check_trust(plugin.file, false);
}

// What the library says about itself, and whether this host can load it.
void read(PluginInfo& plugin) {
  const auto load = [&]() -> Status {
    PIPER_ASSIGN(const std::string bytes, read_library(plugin.file));
    PIPER_ASSIGN(const std::string text, elf_section(bytes, kSection, plugin.file));
    PIPER_ASSIGN(plugin.manifest, parse_manifest(text, plugin.file + " (manifest)"));
    const AbiVersion lowest{plugin.manifest.abi_major, plugin.manifest.abi_minor};
    auto minor = negotiate(host_abi(), lowest, lowest.minor);
    if (!minor) {
      minor.error().front().where = {plugin.file, 0, 0};
      return fail(std::move(minor.error()));
    }
    return {};
  };
  if (const Status status = load(); !status) {
    plugin.problems.insert(plugin.problems.end(), status.error().begin(), status.error().end());
  }
}

std::vector<PluginInfo> scan(const std::string& folder, bool allow_unsafe) {
  std::vector<PluginInfo> plugins;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".so") {
      PluginInfo plugin;
      plugin.file = entry.path().string();
      plugin.manifest.id = entry.path().stem().string();
      plugins.push_back(std::move(plugin));
    }
  }
  std::sort(plugins.begin(), plugins.end(),
            [](const PluginInfo& a, const PluginInfo& b) { return a.file < b.file; });
  const Status safe_folder = plugins.empty() ? Status() : check_folder(folder);
  for (PluginInfo& plugin : plugins) {
    if (const Status safe = check_file(plugin, safe_folder); !safe) {
      plugin.problems = safe.error();
      if (allow_unsafe) {
        plugin.warnings = std::exchange(plugin.problems, {});
        for (Diagnostic& diagnostic : plugin.warnings) {
          diagnostic.severity = Severity::warning;
        }
      }
    }
    read(plugin);
  }
  return plugins;
}

// Two files of one folder with one id: neither is better than the other.
void refuse_duplicates(std::vector<PluginInfo>& plugins) {
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    for (std::size_t j = 0; j < plugins.size(); ++j) {
      if (i != j && !plugins[i].manifest.version.empty() && !plugins[j].manifest.version.empty() &&
          plugins[i].manifest.id == plugins[j].manifest.id) {
        Diagnostic twice =
            error("plugin.duplicate_id",
                  "two plugins of one folder have the id '" + plugins[i].manifest.id + "'",
                  Location{plugins[i].file, 0, 0});
        twice.note("the other one", Location{plugins[j].file, 0, 0});
        plugins[i].problems.push_back(std::move(twice));
        break;
      }
    }
  }
}

std::string program_folder() {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  return failure ? "" : program.parent_path().string();
}

void add_if_there(SearchPath& path, const fs::path& folder) {
  std::error_code failure;
  const fs::path canonical = fs::canonical(folder, failure);
  if (!failure && fs::is_directory(canonical, failure) &&
      std::find(path.directories.begin(), path.directories.end(), canonical.string()) ==
          path.directories.end()) {
    path.directories.push_back(canonical.string());
  }
}

}  // namespace

Expected<SearchPath> plugin_search_path(const std::vector<std::string>& given, bool allow_unsafe) {
  SearchPath path;
  path.allow_unsafe = allow_unsafe;
  if (const std::string folder = program_folder(); !folder.empty()) {
    add_if_there(path, fs::path(folder).parent_path() / "lib/piper/plugins");
  }
  const char* variable = ::getauxval(AT_SECURE) == 0 ? std::getenv("PIPER_PLUGIN_PATH") : nullptr;
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path folder(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!folder.empty() && !folder.is_absolute()) {
      return fail(
          error("plugin.directory",
                "expected absolute folders in PIPER_PLUGIN_PATH, got '" + folder.string() + "'"));
    }
    std::error_code failure;
    if (!folder.empty() && !fs::is_directory(folder, failure)) {
      return fail(error("plugin.directory",
                        "expected folders in PIPER_PLUGIN_PATH, got '" + folder.string() + "'"));
    }
    add_if_there(path, folder);
  }
  for (const std::string& folder : given) {
    std::error_code failure;
    if (!fs::is_directory(folder, failure)) {
      return fail(
          error("plugin.directory", "expected a folder for --plugin-dir, got '" + folder + "'"));
    }
    add_if_there(path, folder);
  }
  return path;
}

Expected<std::vector<PluginInfo>> find_plugins(const SearchPath& path) {
  std::vector<PluginInfo> all;
  for (const std::string& folder : path.directories) {
    std::error_code failure;
    if (!fs::path(folder).is_absolute() || !fs::is_directory(folder, failure)) {
      return fail(
          error("plugin.directory", "expected an absolute path of a folder, got '" + folder + "'"));
    }
    std::vector<PluginInfo> found = scan(folder, path.allow_unsafe);
    refuse_duplicates(found);
    for (PluginInfo& plugin : found) {
      const auto first = std::find_if(all.begin(), all.end(), [&](const PluginInfo& other) {
        return other.shadowed_by.empty() && other.manifest.id == plugin.manifest.id &&
               fs::path(other.file).parent_path() != fs::path(plugin.file).parent_path();
      });
      if (first != all.end()) {
        plugin.shadowed_by = first->file;
      }
      all.push_back(std::move(plugin));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const PluginInfo& a, const PluginInfo& b) {
    return a.manifest.id < b.manifest.id;
  });
  return all;
}

}  // namespace piper
