#include "runtime/data/validation_remarks.h"

#include <string>

#include "core/config/schema.h"

namespace piper {

Diagnostics validation_remarks(const Config& config, std::int64_t held_out_rows) {
  Diagnostics remarks;
  const ValidationConfig& validation = config.validation;
  if (validation.fraction == 0) {
    return remarks;  // remarked on without a look at the data
  }
  if (held_out_rows == 0) {
    for (const char* key : {"validation.fraction", "validation.freq", "validation.steps"}) {
      if (is_given(config, key)) {
        remarks.push_back(warning("config.no_effect",
                                  std::string(key) + " has no effect: the data is too little to "
                                                     "hold out a part of it",
                                  config.where(key)));
      }
    }
    return remarks;
  }
  const std::int64_t rows = config.training.global_batch_size;
  const std::int64_t batches = (held_out_rows + rows - 1) / rows;
  if (validation.steps > batches) {
    remarks.push_back(warning("config.less_effect",
                              "validation.steps: expected at most " + std::to_string(batches) +
                                  ", for the " + std::to_string(held_out_rows) +
                                  (held_out_rows == 1 ? " row" : " rows") + " held out, got " +
                                  std::to_string(validation.steps) +
                                  ": a held-out loss is of all of them",
                              config.where("validation.steps")));
  }
  return remarks;
}

}  // namespace piper
