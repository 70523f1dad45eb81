// A plan from a file, as `piper plan` prints it, instead of from a job.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// A graph of `piper capture`. `key` is what a message calls the file, and `where` who names it.
Expected<ModelGraph> read_graph(const std::string& file, const std::string& key,
                                const Location& where = {});

struct PlanFile {
  ModelGraph model;
  Plan plan;
};

// Reads both, and proves the plan. Errors: cli.input, those of the graph's and the plan's text, and
// the verifier's: at the line of the task that they are about, else at the file.
Expected<PlanFile> read_plan_file(const std::string& file, const std::string& graph);

// Adds --graph, which a command takes with a plan file.
CLI::Option* add_graph_option(CLI::App& command, std::string& graph);

}  // namespace piper
