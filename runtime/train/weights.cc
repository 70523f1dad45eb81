#include "runtime/train/weights.h"

namespace piper {

Status check_weights(const Config&, const ModelGraph&) {
  return {};
}

Status load_initial_weights(const Job& job, Engine&, Reference*) {
  if (job.config.checkpoint.initial_load_path.empty()) {
    return {};
  }
  return fail(error("checkpoint.unsupported", "initial_load_path cannot be read",
                    job.config.where("checkpoint.initial_load_path")));
}

Status save_weights(const Job& job, const Engine&) {
  if (job.config.checkpoint.last_save_path.empty()) {
    return {};
  }
  return fail(error("checkpoint.unsupported", "last_save_path cannot be written",
                    job.config.where("checkpoint.last_save_path")));
}

Status save_gradients(const Job&, const Engine&, const std::string&) {
  return fail(error("checkpoint.unsupported", "gradients cannot be saved"));
}

}  // namespace piper
