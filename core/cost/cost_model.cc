#include "core/cost/cost_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "core/config/raw.h"
#include "core/config/schema.h"

namespace piper {
namespace {

using Kind = RawValue::Kind;

constexpr double kSlowest = 1e-6, kFastest = 1e12;  // of a machine, in its units
constexpr double kMostMicroseconds = 1e9;

constexpr std::pair<std::string_view, Op> kMeasuredOps[] = {
    {"forward", Op::forward},
    {"backward", Op::backward},
    {"backward_input", Op::backward_input},
    {"backward_weight", Op::backward_weight},
};

// Reads one table; remembers every mistake.
class Table {
 public:
  Table(const RawValue& table, std::string name, Diagnostics& errors)
      : table_(table), name_(std::move(name)), errors_(errors) {}

  void number(std::string_view key, double& out, double least, double most) {
    const RawValue* value = take(key);
    if (value == nullptr) {
      return;
    }
    const double got =
        value->kind == Kind::integer ? static_cast<double>(value->integer) : value->number;
    if (value->kind != Kind::integer && value->kind != Kind::number) {
      wrong("cost.type", key, "a number", *value);
    } else if (!(got >= least && got <= most)) {
      wrong("cost.range", key, "a number from " + toml_number(least) + " to " + toml_number(most),
            *value);
    } else {
      out = got;
    }
  }
  void text(std::string_view key, std::string& out) {
    if (const RawValue* value = take(key)) {
      value->kind == Kind::text ? void(out = value->text)
                                : wrong("cost.type", key, "a text", *value);
    }
  }
  const RawValue* take(std::string_view key) {
    known_.emplace_back(key);
    return table_.find(key);
  }
  void wrong(std::string code, std::string_view key, const std::string& expected,
             const RawValue& got) {
    errors_.push_back(error(
        std::move(code),
        name_ + std::string(key) + ": expected " + expected + ", got " + describe(got), got.where));
  }
  // Call after the last key.
  void refuse_others() {
    for (const RawEntry& entry : table_.entries) {
      if (std::find(known_.begin(), known_.end(), entry.key) == known_.end()) {
        errors_.push_back(error(
            "cost.key", "unknown key '" + name_ + entry.key + "'" + suggest(entry.key, known_),
            entry.where));
      }
    }
  }

 private:
  const RawValue& table_;
  std::string name_;
  Diagnostics& errors_;
  std::vector<std::string> known_;
};

void read_link(const RawValue* link, const std::string& name, Link& out, Diagnostics& errors) {
  if (link == nullptr) {
    return;
  }
  Table table(*link, name + '.', errors);
  table.number("latency_us", out.latency_us, 0, kMostMicroseconds);
  table.number("gbps", out.gbps, kSlowest, kFastest);
  table.refuse_others();
}

// "3" or "0..4".
bool read_regions(const std::string& text, MeasuredCost& out) {
  const char* end = text.data() + text.size();
  auto at = std::from_chars(text.data(), end, out.first);
  out.last = out.first;
  if (at.ec == std::errc() && end - at.ptr > 2 && at.ptr[0] == '.' && at.ptr[1] == '.') {
    at = std::from_chars(at.ptr + 2, end, out.last);
  }
  return at.ec == std::errc() && at.ptr == end && out.first <= out.last;
}

MeasuredCost read_cost(const RawValue& entry, Diagnostics& errors) {
  MeasuredCost cost;
  cost.where = entry.where;
  Table table(entry, "cost.", errors);
  std::vector<std::string> names;
  for (const auto& [name, op] : kMeasuredOps) {
    names.emplace_back(name);
  }
  if (const RawValue* op = table.take("op")) {
    const auto known = std::find(names.begin(), names.end(), op->text);
    if (known == names.end()) {
      errors.push_back(error("cost.op",
                             "cost.op: unknown pass " + describe(*op) + suggest(op->text, names),
                             op->where));
    } else {
      cost.op = kMeasuredOps[known - names.begin()].second;
    }
  }
  if (const RawValue* regions = table.take("regions")) {
    if (regions->kind == Kind::integer && regions->integer >= 0) {
      cost.first = cost.last = static_cast<std::uint32_t>(regions->integer);
    } else if (regions->kind != Kind::text || !read_regions(regions->text, cost)) {
      table.wrong("cost.range", "regions", "a region or a range of them, as in \"0..4\"", *regions);
    }
  }
  table.number("us", cost.us, 0, kMostMicroseconds);
  table.refuse_others();
  for (const char* key : {"op", "regions", "us"}) {
    if (entry.find(key) == nullptr) {
      errors.push_back(
          error("cost.key", std::string("[[cost]]: expected the key '") + key + "'", entry.where));
    }
  }
  return cost;
}

Expected<std::string> read_text(const std::string& file, std::string_view key,
                                const Config& config) {
  std::ifstream stream(file, std::ios::binary);
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(file, ignored);  // opens, but throws
  std::string text;
  if (stream && !is_folder) {
    text.assign(std::istreambuf_iterator<char>(stream), {});
  }
  if (!stream || is_folder) {
    return fail(
        error("cost.file",
              std::string(key) + ": expected a file, got '" + file + "', which cannot be read",
              config.where(key)));
  }
  return text;
}

}  // namespace

Expected<Machine> parse_machine(std::string_view text, const std::string& file) {
  PIPER_ASSIGN(const RawValue root, parse_raw(text, file));
  Machine machine;
  Diagnostics errors;
  Table table(root, "", errors);
  table.text("name", machine.name);
  table.number("tflops", machine.tflops, kSlowest, kFastest);
  table.number("memory_gbps", machine.memory_gbps, kSlowest, kFastest);
  double ranks = machine.ranks_per_node;
  table.number("ranks_per_node", ranks, 1, 1e6);
  machine.ranks_per_node = static_cast<std::uint32_t>(ranks);
  read_link(table.take("node"), "node", machine.node, errors);
  read_link(table.take("network"), "network", machine.network, errors);
  table.refuse_others();
  if (!errors.empty()) {
    return fail(std::move(errors));
  }
  return machine;
}

Expected<std::vector<MeasuredCost>> parse_measured(std::string_view text, const std::string& file) {
  PIPER_ASSIGN(const RawValue root, parse_raw(text, file));
  std::vector<MeasuredCost> costs;
  Diagnostics errors;
  Table table(root, "", errors);
  if (const RawValue* entries = table.take("cost")) {
    if (!entries->is_tables()) {
      table.wrong("cost.type", "cost", "[[cost]] tables", *entries);
    }
    for (const RawValue& entry : entries->items) {
      costs.push_back(read_cost(entry, errors));
    }
  }
  table.refuse_others();
  for (std::size_t i = 0; i < costs.size() && errors.empty(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (costs[i].op == costs[j].op && costs[i].first <= costs[j].last &&
          costs[j].first <= costs[i].last) {
        Diagnostic twice =
            error("cost.twice",
                  "[[cost]]: a second cost of op = \"" + std::string(to_string(costs[i].op)) +
                      "\" for region " + std::to_string(std::max(costs[i].first, costs[j].first)),
                  costs[i].where);
        twice.note("the first is here", costs[j].where);
        errors.push_back(std::move(twice));
      }
    }
  }
  if (!errors.empty()) {
    return fail(std::move(errors));
  }
  return costs;
}

Expected<CostModel> load_cost_model(const Config& config) {
  CostModel model;
  model.kind = config.cost.model == "unit"         ? CostModel::Kind::unit
               : config.cost.model == "analytical" ? CostModel::Kind::analytical
                                                   : CostModel::Kind::measured;
  if (!config.cost.machine.empty()) {
    PIPER_ASSIGN(const std::string text, read_text(config.cost.machine, "cost.machine", config));
    PIPER_ASSIGN(model.machine, parse_machine(text, config.cost.machine));
  }
  if (model.kind == CostModel::Kind::measured) {
    model.measured_file = config.cost.file;
    PIPER_ASSIGN(const std::string text, read_text(config.cost.file, "cost.file", config));
    PIPER_ASSIGN(model.measured, parse_measured(text, config.cost.file));
  }
  return model;
}

}  // namespace piper
