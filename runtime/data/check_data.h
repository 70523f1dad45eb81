// A look at the files of a data set before a run.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace piper {

struct DataLook {
  bool whole = false;  // all of the data; otherwise what fits into the time
  std::chrono::milliseconds time{2000};
  // Hears how far a look is that takes long; may be empty.
  std::function<void(const std::string&)> progress = {};
};

struct DataReport {
  // Files of text that are none (data.not_text), labels that are the tokens of the same place
  // (data.unshifted_labels), what [validation] says in vain.
  Diagnostics remarks;
  std::string looked_at;  // `data: looked at all 8 rows`
};

// Errors have codes data.*: what is wrong with the job's data as far as it was looked at.
Expected<DataReport> check_data(const Config& config, const ModelGraph& model,
                                const DataLook& look = {});

}  // namespace piper
