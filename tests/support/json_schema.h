// Checks JSON against a JSON Schema, as far as ours use it: type, enum, const, minimum, properties,
// required, additionalProperties, items, and $ref to #/$defs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace piper::test {

// "" where `value` fits; else the first thing that does not, with its JSON pointer. A keyword that
// this check does not know is such a thing too.
std::string schema_fault(const nlohmann::json& schema, const nlohmann::json& value);

}  // namespace piper::test
