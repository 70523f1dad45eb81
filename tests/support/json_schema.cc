#include "tests/support/json_schema.h"

#include <algorithm>

namespace piper::test {
namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  return type == "object"    ? value.is_object()
         : type == "array"   ? value.is_array()
         : type == "string"  ? value.is_string()
         : type == "boolean" ? value.is_boolean()
         : type == "integer" ? value.is_number_integer()
                             : false;
}

class Check {
 public:
  explicit Check(const json& root) : root_(root) {}

  std::string run(const json& schema, const json& value, const std::string& at) const {
    if (schema.is_boolean()) {
      return schema.get<bool>() ? "" : at + ": nothing is allowed here";
    }
    for (const auto& [keyword, rule] : schema.items()) {
      if (const std::string fault = keyword_fault(keyword, rule, schema, value, at);
          !fault.empty()) {
        return fault;
      }
    }
    return "";
  }

 private:
  std::string keyword_fault(const std::string& keyword, const json& rule, const json& schema,
                            const json& value, const std::string& at) const {
    if (keyword == "$ref") {
      const std::string target = rule.get<std::string>();
      return run(root_.at(json::json_pointer(target.substr(1))), value, at);
    }
    if (keyword == "type") {
      return has_type(value, rule) ? "" : at + ": expected " + rule.get<std::string>();
    }
    if (keyword == "enum") {
      return std::find(rule.begin(), rule.end(), value) != rule.end()
                 ? ""
                 : at + ": expected one of " + rule.dump() + ", got " + value.dump();
    }
    if (keyword == "const") {
      return value == rule ? "" : at + ": expected " + rule.dump();
    }
    if (keyword == "minimum") {
      return value >= rule ? "" : at + ": expected at least " + rule.dump();
    }
    if (keyword == "required") {
      for (const json& name : rule) {
        if (!value.contains(name.get<std::string>())) {
          return at + ": lacks " + name.dump();
        }
      }
      return "";
    }
    if (keyword == "items") {
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (std::string fault = run(rule, value[i], at + "/" + std::to_string(i)); !fault.empty()) {
          return fault;
        }
      }
      return "";
    }
    if (keyword == "properties" || keyword == "additionalProperties") {
      return members(schema, value, at);
    }
    const bool says_nothing = keyword == "$schema" || keyword == "$defs" || keyword == "title" ||
                              keyword == "description";
    return says_nothing ? "" : at + ": the check does not know the keyword " + keyword;
  }

  std::string members(const json& schema, const json& value, const std::string& at) const {
    const json known = schema.value("properties", json::object());
    for (const auto& [name, member] : value.items()) {
      const json& rule =
          known.contains(name) ? known[name] : schema.value("additionalProperties", json(true));
      if (std::string fault = run(rule, member, at + "/" + name); !fault.empty()) {
        return fault;
      }
    }
    return "";
  }

  const json& root_;
};

}  // namespace

std::string schema_fault(const json& schema, const json& value) {
  return Check(schema).run(schema, value, "");
}

}  // namespace piper::test
