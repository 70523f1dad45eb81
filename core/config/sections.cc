// Sections whose keys are names of the user's choice, or that come as lists of tables.
#include <algorithm>
#include <cctype>
#include <map>

#include "core/config/load.h"
#include "core/config/schema.h"

namespace piper {
namespace {

using Kind = RawValue::Kind;

// Ranks of this version are threads of one process; more are a slip, and products must not
// overflow.
constexpr std::int64_t kMostRanks = 65'536;

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (std::isalnum(c) != 0 && c < 0x80) || c == '_';
         });
}

void read_axis(Loading& loading, const RawEntry& entry) {
  const std::string path = "mesh." + entry.key;
  Key key;
  key.type = Key::Type::integer;
  key.bounds = {.low = 1, .high = static_cast<double>(kMostRanks)};
  if (!is_name(entry.key)) {
    loading.refuse(
        path, error("config.name",
                    "expected an axis name of letters, digits and '_', got '" + entry.key + "'",
                    entry.where));
  } else if (auto wrong = check(key, path, entry.value)) {
    loading.refuse(path, *std::move(wrong));
  } else {
    auto& axes = loading.config.mesh.axes;
    const auto size = static_cast<std::uint32_t>(entry.value.integer);
    const auto known = std::find_if(axes.begin(), axes.end(),
                                    [&](const auto& axis) { return axis.first == entry.key; });
    if (known != axes.end()) {
      known->second = size;
    } else if (entry.key == "ep") {
      axes.insert(axes.begin(), {entry.key, size});  // takes no ranks of its own
    } else {
      axes.insert(axes.end() - 1, {entry.key, size});  // dp stays innermost
    }
  }
}

// Outermost first; axes that the list leaves out stay outside of it, in their default order.
void order_axes(Loading& loading, const RawValue& order) {
  const std::string path = "mesh.order";
  auto& axes = loading.config.mesh.axes;
  const bool texts = order.kind == Kind::list &&
                     std::all_of(order.items.begin(), order.items.end(),
                                 [](const RawValue& item) { return item.kind == Kind::text; });
  if (!texts) {
    loading.refuse(path, error("config.type",
                               path + ": expected a list of axis names, outermost first, got " +
                                   describe(order),
                               order.where));
    return;
  }
  std::vector<std::string> names;
  for (const auto& axis : axes) {
    if (axis.first != "ep") {
      names.push_back(axis.first);
    }
  }
  std::vector<std::string> seen;
  for (const RawValue& item : order.items) {
    if (std::find(names.begin(), names.end(), item.text) == names.end()) {
      loading.refuse(path,
                     error("config.unknown_axis",
                           path + ": unknown axis '" + item.text + "'" + suggest(item.text, names),
                           item.where));
      return;
    }
    if (std::find(seen.begin(), seen.end(), item.text) != seen.end()) {
      loading.refuse(path, error("config.duplicate_axis",
                                 path + ": axis '" + item.text + "' is given twice", item.where));
      return;
    }
    seen.push_back(item.text);
    const auto axis =
        std::find_if(axes.begin(), axes.end(), [&](const auto& a) { return a.first == item.text; });
    std::rotate(axis, axis + 1, axes.end());
  }
}

const RawValue* require_text(Loading& loading, const RawValue& table, std::string_view name,
                             const std::string& path) {
  const RawValue* value = table.find(name);
  if (value == nullptr) {
    return nullptr;
  }
  if (value->kind != Kind::text || value->text.empty()) {
    loading.refuse(path, error("config.type",
                               path + ": expected a text, got " +
                                   (value->kind == Kind::text ? "an empty one" : describe(*value)),
                               value->where));
    return nullptr;
  }
  return value;
}

void read_strategy(Loading& loading, const RawValue& table) {
  StrategyConfig strategy;
  strategy.where = table.where;
  const RawValue* plugin = require_text(loading, table, "plugin", "strategy.plugin");
  const RawValue* name = require_text(loading, table, "name", "strategy.name");
  if (plugin != nullptr) {
    strategy.plugin = plugin->text;
  } else if (table.find("plugin") == nullptr) {
    loading.refuse("strategy",
                   error("config.missing_key", "[[strategy]]: expected the key 'plugin', got none",
                         table.where));
  }
  strategy.name = name != nullptr ? name->text : strategy.plugin;
  for (const RawEntry& entry : table.entries) {
    if (entry.key == "plugin" || entry.key == "name") {
      continue;
    }
    const std::string path = "strategy." + strategy.name + '.' + entry.key;
    loading.config.locations[path] = entry.value.where;
    if (auto option = to_option(path, entry.value)) {
      strategy.options.emplace_back(entry.key, *std::move(option));
    } else {
      loading.refuse(path, std::move(option.error().front()));
    }
  }
  loading.config.strategies.push_back(std::move(strategy));
}

}  // namespace

void read_mesh(Loading& loading, const RawValue& section) {
  for (const RawEntry& entry : section.entries) {
    loading.config.locations["mesh." + entry.key] = entry.value.where;
    if (entry.key != "order") {
      read_axis(loading, entry);
    }
  }
  if (const RawValue* order = section.find("order")) {
    order_axes(loading, *order);
  }
  const MeshConfig& mesh = loading.config.mesh;
  if (const std::uint32_t ep = mesh.size("ep"); mesh.size("dp") % ep != 0) {
    loading.refuse("mesh.ep",
                   error("config.range",
                         "mesh.ep: expected a divisor of dp " + std::to_string(mesh.size("dp")) +
                             ", got " + std::to_string(ep),
                         loading.config.where("mesh.ep")));
  }
  std::int64_t world = 1;
  for (const auto& axis : mesh.axes) {
    world *= axis.first == "ep" ? 1 : axis.second;
    if (world > kMostRanks) {
      loading.refuse("mesh", error("config.range",
                                   "mesh: expected at most " + std::to_string(kMostRanks) +
                                       " ranks, got a larger product of axes",
                                   section.where));
      return;
    }
  }
}

void read_optimizer_groups(Loading& loading, const RawValue& groups) {
  if (!groups.is_tables()) {
    loading.refuse("optimizer.group",
                   error("config.type",
                         "expected [[optimizer.group]], got " +
                             (groups.kind == Kind::table ? "[optimizer.group]" : describe(groups)),
                         groups.where));
    return;
  }
  const Key* lr = find_key("optimizer", "lr");
  const Key* weight_decay = find_key("optimizer", "weight_decay");
  Key globs;
  globs.type = Key::Type::texts;
  const std::string section = "optimizer.group";
  for (const RawValue& table : groups.items) {
    OptimizerGroup group;
    group.where = table.where;
    for (const RawEntry& entry : table.entries) {
      const std::string path = section + '.' + entry.key;
      const Key* key = entry.key == "parameters"     ? &globs
                       : entry.key == "lr"           ? lr
                       : entry.key == "weight_decay" ? weight_decay
                                                     : nullptr;
      if (key == nullptr) {
        loading.refuse(path, error("config.unknown_key",
                                   "unknown key '" + entry.key + "' in [[optimizer.group]]" +
                                       suggest(entry.key, {"parameters", "lr", "weight_decay"}),
                                   entry.where));
      } else if (auto wrong = check(*key, path, entry.value)) {
        loading.refuse(path, *std::move(wrong));
      } else if (key == &globs) {
        const auto add = [&](const RawValue& glob) {
          const std::size_t number = loading.config.optimizer.groups.size();
          loading.config.locations[glob_key(number, group.parameters.size())] = glob.where;
          group.parameters.push_back(glob.text);
        };
        if (entry.value.kind == Kind::text) {
          add(entry.value);
        }
        for (const RawValue& item : entry.value.items) {
          add(item);
        }
      } else {
        (key == lr ? group.lr : group.weight_decay) = entry.value.kind == Kind::integer
                                                          ? static_cast<double>(entry.value.integer)
                                                          : entry.value.number;
      }
    }
    if (table.find("parameters") == nullptr) {
      loading.refuse(section, error("config.missing_key",
                                    "[[optimizer.group]]: expected the key 'parameters', got none",
                                    table.where));
    }
    loading.config.optimizer.groups.push_back(std::move(group));
  }
}

std::string glob_key(std::size_t group, std::size_t glob) {
  return "optimizer.group." + std::to_string(group) + '.' + std::to_string(glob);
}

void read_strategies(Loading& loading, const RawValue& strategies) {
  if (!strategies.is_tables()) {
    loading.refuse("strategy",
                   error("config.type",
                         "expected [[strategy]], one table a plugin, got " +
                             (strategies.kind == Kind::table ? "[strategy]" : describe(strategies)),
                         strategies.where));
    return;
  }
  std::map<std::string, Location> names;
  for (const RawValue& table : strategies.items) {
    read_strategy(loading, table);
    const RawValue* name = table.find("name");
    if (name == nullptr || name->text.empty()) {
      continue;
    }
    if (const auto [first, added] = names.emplace(name->text, table.where); !added) {
      loading.refuse("strategy",
                     error("config.duplicate_name",
                           "strategy name '" + name->text + "' is given twice", name->where)
                         .note("first given here", first->second));
    }
  }
}

void read_directives(Loading& loading, const RawValue& directives) {
  if (!directives.is_tables()) {
    loading.refuse("directive", error("config.type",
                                      "expected [[directive]], one table a directive, got " +
                                          (directives.kind == Kind::table ? "[directive]"
                                                                          : describe(directives)),
                                      directives.where));
    return;
  }
  loading.config.directives = directives.items;
}

}  // namespace piper
