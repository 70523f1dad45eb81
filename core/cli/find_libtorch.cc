#include "core/cli/find_libtorch.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace piper {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libtorch_cpu.so";

std::string environment(const char* name) {
  const char* value = ::secure_getenv(name);
  return value == nullptr ? "" : value;
}

// "2.11" of "2.11.0+cu130": what has one binary interface.
std::string series(std::string_view version) {
  const std::size_t first = version.find('.');
  return std::string(
      version.substr(0, first == version.npos ? first : version.find('.', first + 1)));
}

// What a wheel's version.py or a LibTorch archive's build-version says; "" where there is neither.
std::string version_of(const fs::path& folder) {
  std::string line;
  for (std::ifstream stream(folder / "version.py"); std::getline(stream, line);) {
    if (line.starts_with("__version__") && line.find('\'') != line.npos) {
      const std::size_t begin = line.find('\'') + 1;
      return line.substr(begin, line.find('\'', begin) - begin);
    }
  }
  std::ifstream stream(folder / "build-version");
  return std::getline(stream, line) ? line : "";
}

// The package torch of the first python3 or python on PATH, which is asked and does not import it.
std::string torch_of_python() {
  const char* const command =
      "for p in python3 python; do command -v $p >/dev/null && exec $p -c '"
      "import importlib.util as u\n"
      "s = u.find_spec(\"torch\")\n"
      "print(s.submodule_search_locations[0] if s else \"\")' 2>/dev/null; done";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command, "re"), ::pclose);
  std::string said;
  char part[512];
  while (pipe != nullptr && std::fgets(part, sizeof part, pipe.get()) != nullptr) {
    said += part;
  }
  return said.substr(0, said.find('\n'));
}

struct Candidate {
  fs::path library;
  std::string because;
};

fs::path library_in(const fs::path& folder) {
  return folder / "lib" / kLibrary;
}

std::vector<Candidate> nearby(const fs::path& runtime) {
  const fs::path folder = runtime.parent_path();
  std::vector<Candidate> candidates{
      {library_in(folder / "torch"), "beside the runtime"},
      {library_in(folder.parent_path().parent_path() / "torch"), "beside the installation"}};
  const std::string path = environment("LD_LIBRARY_PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (const fs::path part = path.substr(begin, end - begin); part.is_absolute()) {
      candidates.push_back({part / kLibrary, "LD_LIBRARY_PATH"});
    }
    begin = end + 1;
  }
  return candidates;
}

// What the loader finds by itself. Loads it.
bool loader_finds_it() {
  return ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL) != nullptr;
}

}  // namespace

std::string libtorch_built_with() {
  return PIPER_LIBTORCH_VERSION;
}

std::string how_to_get_libtorch() {
  const std::string version = libtorch_built_with();
  return "Piper needs LibTorch " + series(version) + ": pip install torch==" + version +
         " for the python3 that is first on PATH, or PIPER_LIBTORCH=FOLDER, which holds lib/" +
         kLibrary;
}

Expected<LibTorch> find_libtorch(const std::string& runtime) {
  std::vector<Diagnostic> looked;  // notes
  const auto look = [&](const Candidate& candidate) -> std::optional<LibTorch> {
    std::error_code failure;
    const fs::path library = fs::canonical(candidate.library, failure);
    if (failure) {
      return std::nullopt;
    }
    LibTorch found{library, version_of(library.parent_path().parent_path()), candidate.because};
    if (found.version.empty() || series(found.version) == series(libtorch_built_with())) {
      return found;
    }
    looked.push_back(error("", "this is LibTorch " + found.version, {library}));
    return std::nullopt;
  };
  const auto give_up = [&](const std::string& what) {
    const std::string wanted = "expected LibTorch " + series(libtorch_built_with());
    Diagnostic failed = looked.empty()
                            ? error("libtorch.missing", wanted + ", got " + what)
                            : error("libtorch.version", wanted + ", got another version");
    for (Diagnostic& other : looked) {
      failed.note(std::move(other.message), std::move(other.where));
    }
    failed.note(how_to_get_libtorch());
    return fail(std::move(failed));
  };

  if (const fs::path given = environment("PIPER_LIBTORCH"); !given.empty()) {
    if (auto found = look({fs::absolute(given / "lib" / kLibrary), "PIPER_LIBTORCH"})) {
      return *std::move(found);
    }
    return give_up("PIPER_LIBTORCH='" + given.string() + "', which holds no lib/" + kLibrary);
  }
  for (const Candidate& candidate : nearby(runtime)) {
    if (auto found = look(candidate)) {
      return *std::move(found);
    }
  }
  if (const std::string package = torch_of_python(); !package.empty()) {
    if (auto found = look({library_in(package), "Python on PATH"})) {
      return *std::move(found);
    }
  }
  if (looked.empty() && loader_finds_it()) {
    return LibTorch{"", "", "the loader's own places"};
  }
  return give_up("none");
}

}  // namespace piper
