#include "runtime/data/glob.h"

#include <glob.h>

#include <filesystem>
#include <system_error>

namespace piper {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> match(const std::string& pattern) {
  glob_t matches{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches) == 0) {
    paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
  return paths;
}

// A pattern that names just this path.
std::string literal(const std::string& path) {
  std::string pattern;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') {
      pattern += '\\';
    }
    pattern += c;
  }
  return pattern;
}

// Adds `folder` and all folders below it.
Status add_folders(const fs::path& folder, const Location& where, std::vector<std::string>& found) {
  found.push_back(folder.string());
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code gone;
    const bool hidden = at->path().filename().string().starts_with('.');
    if (!hidden && !at->is_symlink(gone) && at->is_directory(gone)) {
      PIPER_TRY(add_folders(at->path(), where, found));
    }
  }
  if (failure) {
    return fail(error("data.unreadable", folder.string() + ": " + failure.message(), where));
  }
  return {};
}

struct Halves {
  std::string before, after;  // the `**`, without its slashes
  bool absolute = false;      // nothing but `/` is before it
};

// At the first component `**`; false where there is none.
bool cut(const std::string& pattern, Halves& halves) {
  for (std::size_t at = pattern.find("**"); at != std::string::npos;
       at = pattern.find("**", at + 1)) {
    const std::size_t end = at + 2;
    const bool begins = at == 0 || pattern[at - 1] == '/';
    const bool ends = end == pattern.size() || pattern[end] == '/';
    if (begins && ends) {
      halves.before = at == 0 ? "" : pattern.substr(0, at - 1);
      halves.absolute = at == 1;
      const std::size_t next = pattern.find_first_not_of('/', end);
      halves.after = next == std::string::npos ? "" : pattern.substr(next);
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_glob(const std::string& entry) {
  return entry.find_first_of("*?[") != std::string::npos;
}

Expected<std::vector<std::string>> expand_glob(const std::string& pattern, const Location& where) {
  Halves halves;
  if (!cut(pattern, halves)) {
    return match(pattern);
  }
  std::vector<std::string> roots = {halves.absolute ? "/" : "."};
  if (!halves.before.empty()) {
    roots = match(halves.before);
  }
  std::vector<std::string> paths;
  for (const std::string& root : roots) {
    std::error_code failure;
    if (!fs::is_directory(root, failure)) {
      continue;
    }
    if (halves.after.empty()) {
      paths.push_back(root);  // whoever reads a folder searches it to the bottom
      continue;
    }
    std::vector<std::string> folders;
    PIPER_TRY(add_folders(root, where, folders));
    for (const std::string& folder : folders) {
      PIPER_ASSIGN(const std::vector<std::string> below,
                   expand_glob(literal(folder) + '/' + halves.after, where));
      paths.insert(paths.end(), below.begin(), below.end());
    }
  }
  return paths;
}

}  // namespace piper
