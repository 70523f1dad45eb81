// One [[directive]] table, read by its directive's descriptor: values by key, and mistakes. Mistakes
// are collected; the value that was asked for is then some default.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/raw.h"
#include "core/directives/filter.h"
#include "core/directives/mesh_ranks.h"
#include "core/directives/toml/keys.h"
#include "core/directives/toml/values.h"

namespace piper {

struct Directive;

class DirectiveTable {
 public:
  DirectiveTable(const RawValue& raw, const MeshRanks& mesh, Diagnostics& mistakes)
      : raw_(raw), mesh_(mesh), mistakes_(mistakes) {}

  // Whether there were none.
  bool read(Directive& into);

  bool has(const std::string& key) const { return raw_.find(key) != nullptr; }
  std::string text(const std::string& key, std::string otherwise) const;
  std::uint32_t number(const std::string& key, std::uint32_t otherwise) const;
  bool flag(const std::string& key) const;      // false where it is not there
  std::uint64_t bytes(const std::string& key);  // 0 where it is not there
  Filter filter() { return compound<Filter>("filter", read_filter); }
  Ranks ranks();
  Family family();

  // A value that `read` makes of the raw one and the key's path; T{} where it is not there.
  template <typename T, typename Read>
  T compound(const std::string& key, Read&& read) {
    const RawValue* value = raw_.find(key);
    if (value == nullptr) {
      return {};
    }
    Expected<T> got = read(*value, path(key));
    if (!got) {
      mistakes_.insert(mistakes_.end(), got.error().begin(), got.error().end());
      return {};
    }
    return *std::move(got);
  }

  // "[[directive]] tag: expected <expected>, got <got>", at the table.
  void missing(const std::string& expected, const std::string& got);

 private:
  bool read_op();
  void check_keys();
  std::string path(const std::string& key) const { return op_ + '.' + key; }
  void refuse(std::string code, std::string message, const Location& where);

  const RawValue& raw_;
  const MeshRanks& mesh_;
  Diagnostics& mistakes_;
  std::string op_;
};

}  // namespace piper
