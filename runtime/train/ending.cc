#include "runtime/train/ending.h"

#include <filesystem>

#include "runtime/train/guarded.h"
#include "runtime/train/weights.h"

namespace piper {
namespace {

std::string of_step(std::int64_t step) {
  return "the weights of step " + std::to_string(step);
}

// A name that nothing has.
std::string beside(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) {
    folder.pop_back();
  }
  folder += ".retry";
  std::string name = folder;
  std::error_code ignored;
  for (int n = 2; std::filesystem::exists(std::filesystem::symlink_status(name, ignored)); ++n) {
    name = folder + '-' + std::to_string(n);
  }
  return name;
}

Status save(const Job& job, const Engine& engine, const ModelFiles& files,
            const std::string& folder) {
  return guarded([&] { return save_last_weights(job, engine, files, folder); });
}

Ending save_somewhere(const Job& job, const Engine& engine, const ModelFiles& files,
                      std::int64_t steps) {
  const std::string& folder = job.config.checkpoint.last_save_path;
  Ending ending;
  Status saved = save(job, engine, files, folder);
  if (saved) {
    ending.weights = folder;
    ending.said = of_step(steps) + " are in '" + folder + "'";
    return ending;
  }
  ending.problems = std::move(saved.error());
  const std::string second = beside(folder);
  if (const Status again = save(job, engine, files, second); again) {
    ending.weights = second;
    ending.said =
        of_step(steps) + " are in '" + second + "': '" + folder + "' could not be written";
    ending.problems.back().note(of_step(steps) + " are in '" + second + "' instead");
  } else {
    ending.said =
        of_step(steps) + " could not be saved, neither in '" + folder + "' nor in '" + second + "'";
    ending.problems.insert(ending.problems.end(), again.error().begin(), again.error().end());
  }
  return ending;
}

}  // namespace

Ending end_run(const Job& job, Engine& engine, const ModelFiles& files, End end,
               std::int64_t steps) {
  const auto not_saved = [](const std::string& why) {
    return Ending{{}, "the weights were not saved: " + why, {}};
  };
  if (job.config.checkpoint.last_save_path.empty()) {
    return not_saved("checkpoint.last_save_path is not given");
  }
  if (end == End::not_finite) {
    return not_saved("training.non_finite is \"stop\"");
  }
  if (steps == 0) {
    return not_saved("no step has ended");
  }
  if (!engine.is_whole()) {
    return not_saved("step " + std::to_string(steps + 1) +
                     " ended while ranks were updating theirs, so they are of no one step");
  }
  return save_somewhere(job, engine, files, steps);
}

}  // namespace piper
