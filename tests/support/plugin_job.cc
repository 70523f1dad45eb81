#include "tests/support/plugin_job.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/plugin/host.h"
#include "tests/support/toy_model.h"

namespace piper::test {
namespace {

std::string text_of(const Action& action) {
  constexpr char kPasses[] = {'F', 'B', 'I', 'W', 'U'};
  return std::to_string(action.stage) + kPasses[static_cast<std::size_t>(action.pass)] +
         std::to_string(action.microbatch);
}

}  // namespace

Config config_of(const PluginJob& job) {
  Config config = toy_config(job.pp, job.dp, job.microbatches);
  config.strategies = {{job.plugin, job.plugin, job.options, {"job.toml", 7, 1}}};
  config.locations["mesh.pp"] = {"job.toml", 2, 6};
  config.locations["training.microbatches"] = {"job.toml", 4, 16};
  return config;
}

OptionValue text_option(const std::string& value) {
  return {value, {"job.toml", 9, 12}};
}
OptionValue number_option(std::int64_t value) {
  return {value, {"job.toml", 9, 12}};
}
OptionValue flag_option(bool value) {
  return {value, {"job.toml", 9, 12}};
}

std::vector<std::pair<std::string, OptionValue>> options_of(const std::string& text) {
  std::vector<std::pair<std::string, OptionValue>> options;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string value = word.substr(equals + 1);
    const bool number = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    options.emplace_back(word.substr(0, equals), number ? number_option(std::stoll(value))
                                                 : value == "true" || value == "false"
                                                     ? flag_option(value == "true")
                                                     : text_option(value));
  }
  return options;
}

Expected<std::vector<Proposal>> propose(const PluginJob& job, const ModelGraph& model,
                                        Diagnostics* warnings) {
  return piper::propose(config_of(job), model, SearchPath{{PIPER_PLUGIN_DIR}, false}, warnings);
}

std::string refusal(const PluginJob& job, const ModelGraph& model) {
  const auto proposals = propose(job, model);
  return proposals ? "" : to_string(proposals.error());
}

TableRows rows_of(const Proposal& proposal) {
  TableRows rows;
  for (const Directive& directive : proposal.directives) {
    const auto* chain = std::get_if<OrderChainDirective>(&directive.what);
    if (chain == nullptr) {
      continue;
    }
    std::vector<std::string>& row = rows.emplace_back();
    for (std::size_t i = 0; i < chain->actions.size(); ++i) {
      const Action& action = chain->actions[i];
      if (action.overlap == 0) {
        row.push_back(text_of(action));
      } else {  // pairs only
        row.push_back("(" + text_of(action) + ";" + text_of(chain->actions.at(++i)) +
                      ")OVERLAP_F_B");
      }
    }
  }
  return rows;
}

}  // namespace piper::test
