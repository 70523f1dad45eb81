#include "core/config/config.h"

#include <algorithm>

#include "core/config/schema.h"

namespace piper {
namespace {

std::string to_toml(const OptionValue& option) {
  struct Printer {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const {
      RawValue raw;
      raw.kind = RawValue::Kind::number;
      raw.number = value;
      return describe(raw);
    }
    std::string operator()(const std::string& value) const { return toml_text(value); }
    std::string operator()(const std::vector<OptionValue>& items) const {
      std::string list;
      for (const OptionValue& item : items) {
        list += (list.empty() ? "" : ", ") + to_toml(item);
      }
      return '[' + list + ']';
    }
  };
  return std::visit(Printer{}, option.value);
}

// Bare where TOML allows it.
std::string toml_key(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-';
  });
  return bare ? name : toml_text(name);
}

std::string line(const std::string& key, const std::string& value) {
  return value.empty() ? "" : toml_key(key) + " = " + value + '\n';
}

std::string print_section(const Config& config, std::string_view section) {
  std::string text;
  for (const Key& key : schema()) {
    if (key.section == section && key.supported) {
      text += line(key.name, key.text(config));
    }
  }
  return text;
}

std::string print_model(const Config& config) {
  std::string text = print_section(config, "model");
  for (const auto& [name, value] : config.model.keys) {
    text += line(name, to_toml(value));
  }
  return text;
}

std::string print_mesh(const MeshConfig& mesh) {
  std::string text;
  std::string order;
  for (const auto& [name, size] : mesh.axes) {
    text += line(name, std::to_string(size));
    if (name != "ep") {
      order += (order.empty() ? "" : ", ") + toml_text(name);
    }
  }
  return text + "order = [" + order + "]\n";
}

std::string print_groups(const std::vector<OptimizerGroup>& groups) {
  std::string text;
  for (const OptimizerGroup& group : groups) {
    std::string globs;
    for (const std::string& glob : group.parameters) {
      globs += (globs.empty() ? "" : ", ") + toml_text(glob);
    }
    text += "\n[[optimizer.group]]\nparameters = [" + globs + "]\n";
    text += line("lr", group.lr ? toml_number(*group.lr) : "");
    text += line("weight_decay", group.weight_decay ? toml_number(*group.weight_decay) : "");
  }
  return text;
}

std::string print_directives(const std::vector<RawValue>& directives) {
  std::string text;
  for (const RawValue& directive : directives) {
    text += "\n[[directive]]\n";
    for (const RawEntry& entry : directive.entries) {
      text += line(entry.key, toml_value(entry.value));
    }
  }
  return text;
}

std::string print_strategies(const std::vector<StrategyConfig>& strategies) {
  std::string text;
  for (const StrategyConfig& strategy : strategies) {
    text += "\n[[strategy]]\n" + line("plugin", toml_text(strategy.plugin));
    if (strategy.name != strategy.plugin) {
      text += line("name", toml_text(strategy.name));
    }
    for (const auto& [name, value] : strategy.options) {
      text += line(name, to_toml(value));
    }
  }
  return text;
}

}  // namespace

std::string toml_value(const RawValue& value) {
  std::string items;
  switch (value.kind) {
    case RawValue::Kind::text:
      return toml_text(value.text);
    case RawValue::Kind::list:
      for (const RawValue& item : value.items) {
        items += (items.empty() ? "" : ", ") + toml_value(item);
      }
      return '[' + items + ']';
    case RawValue::Kind::table:
      for (const RawEntry& entry : value.entries) {
        items +=
            (items.empty() ? "" : ", ") + toml_key(entry.key) + " = " + toml_value(entry.value);
      }
      return items.empty() ? "{}" : "{ " + items + " }";
    case RawValue::Kind::boolean:
    case RawValue::Kind::integer:
    case RawValue::Kind::number:
    case RawValue::Kind::date:
      break;
  }
  return describe(value);  // numbers, true and false; a date is refused where it is read
}

std::uint32_t MeshConfig::size(std::string_view axis) const {
  for (const auto& [name, size] : axes) {
    if (name == axis) {
      return size;
    }
  }
  return 1;
}

std::uint32_t MeshConfig::world() const {
  std::uint32_t ranks = 1;
  for (const auto& [name, size] : axes) {
    ranks *= name == "ep" ? 1 : size;
  }
  return ranks;
}

Location Config::where(std::string_view dotted_key) const {
  while (!dotted_key.empty()) {
    if (const auto found = locations.find(dotted_key); found != locations.end()) {
      return found->second;
    }
    const std::size_t dot = dotted_key.rfind('.');
    dotted_key = dotted_key.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return {file};
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star =
      std::string_view::npos;  // the last `*`, and the text that it has swallowed up to
  std::size_t swallowed = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      swallowed = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++swallowed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::uint32_t optimizer_group(const Config& config, std::string_view parameter) {
  const auto& groups = config.optimizer.groups;
  const auto matching =
      std::find_if(groups.begin(), groups.end(), [&](const OptimizerGroup& group) {
        return std::any_of(group.parameters.begin(), group.parameters.end(),
                           [&](const std::string& glob) { return glob_matches(glob, parameter); });
      });
  return static_cast<std::uint32_t>(matching - groups.begin());
}

std::string print(const Config& config) {
  std::string text;
  for (const std::string& section : section_names()) {
    std::string body;
    if (section == "strategy") {
      text += print_strategies(config.strategies);
      continue;
    }
    if (section == "directive") {
      text += print_directives(config.directives);
      continue;
    }
    if (section == "mesh") {
      body = print_mesh(config.mesh);
    } else if (section == "model") {
      body = print_model(config);
    } else {
      body = print_section(config, section);
    }
    if (!body.empty()) {
      text += (text.empty() ? "[" : "\n[") + section + "]\n" + body;
    }
    if (section == "optimizer") {
      text += print_groups(config.optimizer.groups);
    }
  }
  return text;
}

std::string model_key(const Config& config) {
  return print_model(config) + line("dtype", toml_text(to_string(config.training.dtype))) +
         line("seq_len", std::to_string(config.training.seq_len));
}

}  // namespace piper
