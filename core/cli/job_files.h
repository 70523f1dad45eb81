// The files that a job reads and writes.
#pragma once

#include <vector>

#include "core/base/output_check.h"
#include "core/cli/commands.h"
#include "core/config/config.h"
#include "core/plugin/host.h"
#include "core/runtime_interface.h"

namespace piper {

// What `piper train` will write: as the job says, and as its command line does.
std::vector<Output> outputs_of(const Job& job, const TrainOptions& options);

// All that a job names: itself, its model, weights, costs and data, files among the options of its
// strategies, and its plugins, as far as they are found.
std::vector<Input> inputs_of(const Config& config, const SearchPath& plugins);

// For a command with outputs of its own: those with a path can be written, and are no inputs.
Status check_outputs_of(const CommandLine& line, const Config& config, std::vector<Output> outputs);

}  // namespace piper
