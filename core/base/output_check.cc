#include "core/base/output_check.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/output_file.h"
#include "core/base/output_target.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

// What a name leads to: a file that is there, or the name that it will get.
using Identity = std::pair<std::pair<dev_t, ino_t>, std::string>;

bool is_regular(const struct stat& found) {
  return S_ISREG(found.st_mode);
}

Identity identity_of(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) {
    return {{found.st_dev, found.st_ino}, ""};
  }
  std::error_code failed;
  return {{0, 0}, fs::weakly_canonical(fs::absolute(path, failed), failed).string()};
}

// Devices and pipes take what comes.
bool takes_anything(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && !is_regular(found) && !S_ISDIR(found.st_mode);
}

// The files that an output writes.
std::vector<std::string> files_of(const Output& output) {
  if (output.files.empty()) {
    return {output.path};
  }
  std::vector<std::string> files;
  for (const std::string& name : output.files) {
    files.push_back(output.path + '/' + name);
  }
  return files;
}

// Every file below the inputs; of two inputs with the same file the first.
std::map<Identity, const Input*> files_of(const std::vector<Input>& inputs) {
  std::map<Identity, const Input*> files;
  for (const Input& input : inputs) {
    std::error_code failed;
    if (!fs::is_directory(input.path, failed)) {
      files.emplace(identity_of(fs::canonical(input.path, failed).string()), &input);
      continue;
    }
    for (fs::recursive_directory_iterator entry(input.path, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      if (std::error_code ignored; entry->is_regular_file(ignored)) {
        files.emplace(identity_of(fs::canonical(entry->path(), ignored).string()), &input);
      }
    }
  }
  return files;
}

Diagnostic name(Diagnostic diagnostic, const Output& output) {
  diagnostic.message = output.what + ": " + diagnostic.message;
  return diagnostic;
}

Status check_room(const Output& output) {
  std::string folder = output.files.empty() ? parent_folder(output.path) : output.path;
  struct statvfs disk {};
  while (::statvfs(folder.c_str(), &disk) != 0) {
    if (const std::string parent = parent_folder(folder); parent != folder) {
      folder = parent;
      continue;
    }
    return {};
  }
  const auto free =
      static_cast<std::int64_t>((::geteuid() == 0 ? disk.f_bfree : disk.f_bavail) * disk.f_frsize);
  if (disk.f_blocks == 0 || free >= output.bytes) {  // no blocks: no disk
    return {};
  }
  return fail(error("output.no_room",
                    output.what + ": expected room for " + human_bytes(output.bytes) + " in '" +
                        output.path + "', got " + human_bytes(free),
                    output.where));
}

// A link to a file is followed; one in a folder is replaced.
OutputOptions options_of(const Output& output) {
  return {"output.unwritable", output.where, !output.files.empty()};
}

Status check_one(const Output& output) {
  const OutputOptions options = options_of(output);
  for (const std::string& file : files_of(output)) {
    if (Status status = check_writable(file, options); !status) {
      return fail(name(std::move(status.error().front()), output));
    }
  }
  return takes_anything(output.path) && output.files.empty() ? Status() : check_room(output);
}

}  // namespace

Status check_outputs(const std::vector<Output>& outputs, const std::vector<Input>& inputs) {
  if (outputs.empty()) {
    return {};
  }
  Diagnostics errors;
  const std::map<Identity, const Input*> read = files_of(inputs);
  std::map<Identity, const Output*> written;
  for (const Output& output : outputs) {
    if (const Status status = check_one(output); !status) {
      errors.insert(errors.end(), status.error().begin(), status.error().end());
      continue;
    }
    for (const std::string& file : files_of(output)) {
      if (takes_anything(file)) {
        continue;
      }
      PIPER_ASSIGN(const OutputTarget target, find_target(file, options_of(output)));
      const Identity identity = identity_of(target.path);
      const auto input = read.find(identity);
      if (input != read.end() && (output.files.empty() || !input->second->replaceable)) {
        errors.push_back(error("output.is_input",
                               output.what + ": expected a file that the job does not read, got '" +
                                   file + "', which is of " + input->second->what + " '" +
                                   input->second->path + "'",
                               output.where));
        break;
      }
      if (const auto [other, fresh] = written.emplace(identity, &output); !fresh) {
        errors.push_back(error("output.twice",
                               output.what + ": expected a file of its own, got '" + file +
                                   "', which is that of " + other->second->what + " too",
                               output.where));
        break;
      }
    }
  }
  return errors.empty() ? Status() : fail(std::move(errors));
}

}  // namespace piper
