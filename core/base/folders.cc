#include "core/base/folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <system_error>

#include "core/base/system_call.h"

namespace piper {
namespace {

Diagnostic unmakeable(const std::string& folder, int system_error, const OutputOptions& options) {
  return error(
      options.code,
      "expected a folder that can be made, got '" + folder + "': " + system_text(system_error),
      options.where);
}

}  // namespace

std::string system_text(int system_error) {
  std::string text = std::generic_category().message(system_error);
  const bool acronym = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) != 0;
  if (!text.empty() && !acronym) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

Diagnostic unwritable(const std::string& path, int system_error, const OutputOptions& options) {
  return error(
      options.code,
      "expected a file that can be written, got '" + path + "': " + system_text(system_error),
      options.where);
}

std::string parent_folder(const std::string& path) {
  const std::size_t name = path.find_last_not_of('/');
  const std::size_t slash = name == std::string::npos ? 0 : path.rfind('/', name);
  if (slash == std::string::npos) {
    return ".";
  }
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

Status flush_folder(const std::string& folder, const OutputOptions& options) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return errno == EACCES ? Status() : fail(unwritable(folder, errno, options));
  }
  const int failed = uninterrupted([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  if (failed != 0 && failed != EINVAL && failed != ENOTSUP) {
    return fail(unwritable(folder, failed, options));
  }
  return {};
}

Status make_folder(const std::string& folder, const OutputOptions& options) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) == 0) {
    return S_ISDIR(found.st_mode) ? Status() : fail(unmakeable(folder, ENOTDIR, options));
  }
  if (errno != ENOENT) {
    return fail(unmakeable(folder, errno, options));
  }
  const std::string parent = parent_folder(folder);
  PIPER_TRY(make_folder(parent, options));
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    return fail(unmakeable(folder, errno, options));
  }
  if (::stat(folder.c_str(), &found) != 0) {
    return fail(unmakeable(folder, errno, options));  // a link to nowhere
  }
  return flush_folder(parent, options);
}

Status make_parents(const std::string& path, const OutputOptions& options) {
  return make_folder(parent_folder(path), options);
}

}  // namespace piper
