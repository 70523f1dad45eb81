// What is left of a run when it ends.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/diagnostic.h"
#include "core/runtime_interface.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/exec/engine.h"

namespace piper {

enum class End : std::uint8_t {
  done,
  interrupted,  // by a signal
  failed,
  not_finite,  // non_finite = "stop": no weights are written
};

struct Ending {
  std::string weights;   // the folder that they are in; "": they were not saved
  std::string said;      // a sentence: where they are, or why they are not saved
  Diagnostics problems;  // errors of saving
};

// Saves the weights, where [checkpoint] last_save_path says so and they are those of one whole step
// of at least `steps` = 1. Where the folder cannot be written, a new one beside it is tried:
// FOLDER.retry, FOLDER.retry-2 and so on. `files` are put beside them. Nothing is thrown.
Ending end_run(const Job& job, Engine& engine, const ModelFiles& files, End end,
               std::int64_t steps);

}  // namespace piper
