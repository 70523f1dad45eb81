// A job with one of Piper's pipeline plugins, run through the host as `piper plan` does, and the
// orders that it proposes in the notation of schedule tables.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"
#include "tests/support/unit_run.h"

namespace piper::test {

struct PluginJob {
  std::string plugin;
  std::uint32_t pp = 1, dp = 1, microbatches = 1;
  std::vector<std::pair<std::string, OptionValue>> options;
};

// The strategy is at job.toml:7:1, mesh.pp at 2:6, training.microbatches at 4:16, options at 9:12.
Config config_of(const PluginJob& job);
OptionValue text_option(const std::string& value);
OptionValue number_option(std::int64_t value);
OptionValue flag_option(bool value);

// Options as `schedule=1f1b stages_per_rank=2`: numbers, true and false, else texts.
std::vector<std::pair<std::string, OptionValue>> options_of(const std::string& text);

// What the plugin says, from the folder of the build.
Expected<std::vector<Proposal>> propose(const PluginJob& job, const ModelGraph& model,
                                        Diagnostics* warnings = nullptr);
// Its diagnostics; "" where it is accepted.
std::string refusal(const PluginJob& job, const ModelGraph& model);

// The order_chain of each rank: `0F0`, `0I2`, `(0F3;3B1)OVERLAP_F_B`.
TableRows rows_of(const Proposal& proposal);

}  // namespace piper::test
