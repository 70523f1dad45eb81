// The steps of load_config.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/raw.h"

namespace piper {

// What loading found so far. `bad` holds the dotted keys that were refused, so that no rule
// complains about a value that was not taken over.
struct Loading {
  Config config;
  Diagnostics errors;
  std::set<std::string, std::less<>> bad;

  void refuse(const std::string& dotted_key, Diagnostic diagnostic);
  bool good(std::initializer_list<std::string_view> dotted_keys) const;
};

// Puts `section.key=value` texts into the raw job, with `--section.key=value` as their place.
void apply_overrides(RawValue& job, const std::vector<std::string>& overrides, Diagnostics& errors);

// [mesh], [[optimizer.group]], [[strategy]], [[directive]] and the keys of [model] that a user's
// own model declares.
void read_mesh(Loading& loading, const RawValue& section);
void read_optimizer_groups(Loading& loading, const RawValue& groups);
void read_strategies(Loading& loading, const RawValue& strategies);
void read_directives(Loading& loading, const RawValue& directives);

// A value for a plugin or a user's model, which types it itself; refuses dates, tables and numbers
// that are not finite.
Expected<OptionValue> to_option(const std::string& path, const RawValue& value);

// What keys must satisfy together.
void check_rules(Loading& loading);

// Settings of a sound job that have no effect, or less than they say: into its remarks.
void add_remarks(Config& config);

}  // namespace piper
