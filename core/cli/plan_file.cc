#include "core/cli/plan_file.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/ir/model_graph_verify.h"
#include "core/verify/verify.h"

namespace piper {
namespace {

std::optional<std::string> contents(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  return stream && text << stream.rdbuf() ? std::optional(text.str()) : std::nullopt;
}

// The node of a task's line, `    0     forward         n8 c1 m0 ...`; nothing for another line.
std::optional<std::uint32_t> node_of(std::string_view line) {
  if (!line.starts_with("    ") || line.find_first_not_of(' ') == line.npos) {
    return std::nullopt;
  }
  std::istringstream words{std::string(line)};
  std::string id, op, node;
  words >> id >> op >> node;
  std::uint32_t number = 0;
  const char* const end = node.data() + node.size();
  const bool is_node =
      node.size() > 1 && node[0] == 'n' && std::from_chars(node.data() + 1, end, number).ptr == end;
  return is_node ? std::optional(number) : std::nullopt;
}

// The same plan with an origin for each task: its line, of the strategy that it had.
Plan with_lines(Plan plan, const std::string& text, const std::string& file) {
  std::istringstream lines(text);
  std::string line;
  for (std::uint32_t number = 1; std::getline(lines, line) && !line.starts_with('#'); ++number) {
    const std::optional<std::uint32_t> node = node_of(line);
    if (node && *node < plan.origin_of_node.size() &&
        plan.origin_of_node[*node] < plan.origins.size()) {
      Provenance from = plan.origins[plan.origin_of_node[*node]];
      from.where = {file, number, 0};
      plan.origin_of_node[*node] = static_cast<std::uint32_t>(plan.origins.size());
      plan.origins.push_back(std::move(from));
    }
  }
  return plan;
}

}  // namespace

Expected<ModelGraph> read_graph(const std::string& file, const std::string& key,
                                const Location& where) {
  const std::optional<std::string> text = contents(file);
  if (!text) {
    return fail(error(
        "model.graph",
        key + ": expected a file of `piper capture`, got '" + file + "', which cannot be read",
        where));
  }
  PIPER_ASSIGN(ModelGraph model, parse_model_graph(*text, file));
  PIPER_TRY(verify(model));
  return model;
}

Expected<PlanFile> read_plan_file(const std::string& file, const std::string& graph) {
  PlanFile read;
  PIPER_ASSIGN(read.model, read_graph(graph, "--graph"));
  const std::optional<std::string> text = contents(file);
  if (!text) {
    return fail(error("cli.input",
                      "expected a file of `piper plan`, got '" + file + "', which cannot be read"));
  }
  PIPER_ASSIGN(read.plan, parse_plan(*text, read.model, file));
  Status proven = verify(with_lines(read.plan, *text, file), read.model);
  if (!proven) {
    for (Diagnostic& wrong : proven.error()) {
      wrong.where = wrong.where.known() ? wrong.where : Location{file, 0, 0};
    }
    return fail(std::move(proven.error()));
  }
  return read;
}

CLI::Option* add_graph_option(CLI::App& command, std::string& graph) {
  return command
      .add_option("--graph", graph, "the model graph of a plan file, as `piper capture` writes it")
      ->type_name("FILE");
}

}  // namespace piper
