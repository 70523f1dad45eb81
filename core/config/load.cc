#include "core/config/load.h"

#include <algorithm>

#include "core/config/schema.h"

namespace piper {
namespace {

using Kind = RawValue::Kind;

void read_key(Loading& loading, const std::string& section, const RawEntry& entry) {
  const std::string path = section + '.' + entry.key;
  loading.config.locations[path] = entry.value.where;
  const Key* key = find_key(section, entry.key);
  if (key == nullptr) {
    loading.refuse(path, error("config.unknown_key",
                               "unknown key '" + entry.key + "' in [" + section + ']' +
                                   suggest(entry.key, key_names(section)),
                               entry.where));
  } else if (!key->supported) {
    loading.refuse(
        path, error("config.unsupported", path + " is not supported by this version", entry.where));
  } else if (auto wrong = check(*key, path, entry.value)) {
    loading.refuse(path, *std::move(wrong));
  } else {
    key->store(loading.config, entry.value);
  }
}

// A model of the user's own declares its keys itself.
void read_model(Loading& loading, const RawValue& section) {
  const RawValue* library = section.find("library");
  const bool own = library != nullptr && !library->text.empty();
  for (const RawEntry& entry : section.entries) {
    const Key* key = find_key("model", entry.key);
    if (!own || (key != nullptr && key->supported)) {
      read_key(loading, "model", entry);
      continue;
    }
    const std::string path = "model." + entry.key;
    loading.config.locations[path] = entry.value.where;
    if (auto option = to_option(path, entry.value)) {
      loading.config.model.keys.emplace(entry.key, *std::move(option));
    } else {
      loading.refuse(path, std::move(option.error().front()));
    }
  }
}

void read_section(Loading& loading, const RawEntry& entry) {
  const std::string& name = entry.key;
  loading.config.locations[name] = entry.value.where;
  const auto& names = section_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    if (entry.value.kind == Kind::table || entry.value.is_tables()) {
      loading.refuse(
          name, error("config.unknown_section",
                      "unknown section [" + name + ']' + suggest(name, names), entry.value.where));
      return;
    }
    std::string hint;
    for (const Key& key : schema()) {
      if (key.name == name && key.supported) {
        hint = " (did you mean it in [" + key.section + "]?)";
        break;
      }
    }
    loading.refuse(
        name, error("config.unknown_key",
                    "expected keys below a section, got '" + name + "' above all of them" + hint,
                    entry.where));
    return;
  }
  if (name == "strategy") {
    read_strategies(loading, entry.value);
    return;
  }
  if (name == "directive") {
    read_directives(loading, entry.value);
    return;
  }
  if (entry.value.kind != Kind::table) {
    const std::string got = entry.value.is_tables() ? "[[" + name + "]]" : describe(entry.value);
    loading.refuse(name, error("config.type", "expected the section [" + name + "], got " + got,
                               entry.value.where));
    return;
  }
  if (name == "mesh") {
    read_mesh(loading, entry.value);
  } else if (name == "model") {
    read_model(loading, entry.value);
  } else {
    for (const RawEntry& child : entry.value.entries) {
      if (name == "optimizer" && child.key == "group") {
        read_optimizer_groups(loading, child.value);
      } else {
        read_key(loading, name, child);
      }
    }
  }
}

}  // namespace

void Loading::refuse(const std::string& dotted_key, Diagnostic diagnostic) {
  bad.insert(dotted_key);
  errors.push_back(std::move(diagnostic));
}

bool Loading::good(std::initializer_list<std::string_view> dotted_keys) const {
  return std::none_of(dotted_keys.begin(), dotted_keys.end(), [&](std::string_view key) {
    return bad.contains(key) || bad.contains(key.substr(0, key.find('.')));
  });
}

Expected<OptionValue> to_option(const std::string& path, const RawValue& value) {
  OptionValue option;
  option.where = value.where;
  switch (value.kind) {
    case Kind::boolean:
      option.value = value.boolean;
      return option;
    case Kind::integer:
      option.value = value.integer;
      return option;
    case Kind::number:
      if (!Bounds{}.holds(value.number) || value.number - value.number != 0) {
        return fail(error("config.range",
                          path + ": expected a finite number, got " + describe(value),
                          value.where));
      }
      option.value = value.number;
      return option;
    case Kind::text:
      option.value = value.text;
      return option;
    case Kind::list: {
      std::vector<OptionValue> items;
      for (const RawValue& item : value.items) {
        PIPER_ASSIGN(OptionValue converted, to_option(path, item));
        items.push_back(std::move(converted));
      }
      option.value = std::move(items);
      return option;
    }
    case Kind::date:
    case Kind::table:
      break;
  }
  return fail(
      error("config.type",
            path + ": expected true or false, a number, a text or a list, got " + describe(value),
            value.where));
}

Expected<Config> load_config(const std::string& file, const std::vector<std::string>& overrides) {
  PIPER_ASSIGN(RawValue job, read_raw(file));

  Loading loading;
  loading.config.file = file;
  loading.config.mesh.axes = {{"pp", 1}, {"dp", 1}};
  Diagnostics bad_overrides;
  apply_overrides(job, overrides, bad_overrides);
  for (const RawEntry& section : job.entries) {
    read_section(loading, section);
  }
  check_rules(loading);

  loading.errors.insert(loading.errors.end(), bad_overrides.begin(), bad_overrides.end());
  if (!loading.errors.empty()) {
    return fail(std::move(loading.errors));
  }
  add_remarks(loading.config);
  return std::move(loading.config);
}

}  // namespace piper
