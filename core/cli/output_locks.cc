#include "core/cli/output_locks.h"

#include <string>
#include <utility>

#include "core/base/folders.h"
#include "core/base/output_target.h"

namespace piper {

Expected<OutputLocks> OutputLocks::take(const Config& config, const TrainOptions& options) {
  const auto named = [](const Location& where) {
    return OutputOptions{.code = "output.unwritable", .where = where, .exclusive = true};
  };
  OutputLocks locks;
  if (const std::string& folder = config.checkpoint.last_save_path; !folder.empty()) {
    const OutputOptions output = named(config.where("checkpoint.last_save_path"));
    PIPER_TRY(make_folder(folder, output));
    PIPER_ASSIGN(FolderLock lock, FolderLock::take(folder, output));
    locks.folders_.push_back(std::move(lock));
  }
  const std::pair<std::string, Location> files[] = {
      {config.profiling.trace, config.where("profiling.trace")},
      {options.save_costs, {}},
      {options.save_gradients, {}}};
  for (const auto& [path, where] : files) {
    if (path.empty()) {
      continue;
    }
    const OutputOptions output = named(where);
    PIPER_ASSIGN(const OutputTarget target, find_target(path, output));
    if (!target.through) {
      PIPER_ASSIGN(OutputFile file, OutputFile::create(path, output));
      locks.files_.push_back(std::move(file));
    }
  }
  return locks;
}

}  // namespace piper
