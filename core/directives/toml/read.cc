#include "core/directives/toml/read.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/bytes.h"
#include "core/config/spelling.h"
#include "core/directives/mesh_ranks.h"
#include "core/directives/toml/keys.h"
#include "core/directives/toml/values.h"

namespace piper {
namespace {

using Form = DirectiveKey::Form;
using What = decltype(Directive::what);

// One table. Mistakes are collected; the value that was asked for is then some default.
class Table {
 public:
  Table(const RawValue& raw, const MeshRanks& mesh, Diagnostics& mistakes)
      : raw_(raw), mesh_(mesh), mistakes_(mistakes) {}

  // Nothing where there were mistakes.
  std::optional<What> read() {
    const std::size_t before = mistakes_.size();
    if (!read_op()) {
      return std::nullopt;
    }
    check_keys();
    if (mistakes_.size() > before) {
      return std::nullopt;
    }
    What what = op_ == "tag"              ? What(tag())
                : op_ == "split"          ? What(split())
                : op_ == "split_backward" ? What(SplitBackwardDirective{filter()})
                : op_ == "place"          ? What(place())
                : op_ == "replicate"      ? What(replicate())
                : op_ == "shard"          ? What(shard())
                                          : order();
    return mistakes_.size() > before ? std::nullopt : std::optional(std::move(what));
  }

 private:
  bool read_op() {
    const RawValue* op = raw_.find("op");
    if (op == nullptr) {
      refuse("config.missing_key", "[[directive]]: expected the key 'op', got none", raw_.where);
      return false;
    }
    const std::vector<std::string>& known = directive_ops();
    if (op->kind != RawValue::Kind::text ||
        std::find(known.begin(), known.end(), op->text) == known.end()) {
      refuse("config.choice",
             "directive.op: expected a directive, got " + describe(*op) + suggest(op->text, known),
             op->where);
      return false;
    }
    op_ = op->text;
    return true;
  }

  void check_keys() {
    for (const RawEntry& entry : raw_.entries) {
      if (entry.key == "op") {
        continue;
      }
      const DirectiveKey* key = find_directive_key(op_, entry.key);
      if (key == nullptr) {
        refuse("config.unknown_key",
               "unknown key '" + entry.key + "' in [[directive]] " + op_ +
                   suggest(entry.key, directive_key_names(op_)),
               entry.where);
      } else if (key->form == Form::plain) {
        if (auto wrong = check(key->scalar, path(entry.key), entry.value)) {
          mistakes_.push_back(*std::move(wrong));
        }
      }
    }
    for (const DirectiveKey& key : directive_keys()) {
      if (key.op == op_ && key.required && !has(key.name)) {
        missing("the key '" + key.name + "'", "none");
      }
    }
  }

  TagDirective tag() {
    TagDirective tag{filter(), text("name", ""), number("index", 0)};
    const int forms = int{has("index")} + int{has("parts")} + int{has("boundaries")};
    if (forms != 1) {
      missing("one of 'index', 'parts' and 'boundaries'", std::to_string(forms));
    }
    if (has("by") && !has("parts")) {
      missing("'parts' with 'by'", "none");
    }
    if (has("over") && has("index")) {
      missing("'parts' or 'boundaries' with 'over'", "'index'");
    }
    if (has("index")) {
      return tag;
    }
    Partition cut;
    const std::string by = text("by", "flops");
    cut.by = has("boundaries") ? Partition::By::boundaries
             : by == "bytes"   ? Partition::By::bytes
             : by == "count"   ? Partition::By::count
                               : Partition::By::flops;
    cut.over = text("over", cut.over);
    cut.boundaries = compound<std::vector<std::uint32_t>>("boundaries", read_indices);
    cut.parts = number("parts", static_cast<std::uint32_t>(cut.boundaries.size() + 1));
    tag.partition = std::move(cut);
    return tag;
  }

  SplitDirective split() { return {filter(), text("dim", "MB"), number("n", 1)}; }

  PlaceDirective place() {
    PlaceDirective place{filter(), ranks()};
    place.stream = text("stream", place.stream);
    return place;
  }

  ReplicateDirective replicate() {
    ReplicateDirective what;
    what.filter = filter();
    what.family = family();
    what.reduce_stream = text("reduce_stream", what.reduce_stream);
    what.gather_stream = text("gather_stream", what.gather_stream);
    what.shard_optimizer = flag("shard_optimizer");
    what.shard_grads = flag("shard_grads");
    what.shard_params = flag("shard_params");
    what.bucket_bytes = bytes("bucket_bytes");
    what.prefetch = number("prefetch", what.prefetch);
    what.keep_gathered = span("keep_gathered");
    what.reduce = span("reduce");
    return what;
  }

  ShardDirective shard() {
    ShardDirective what{filter(), family()};
    what.stream = text("stream", what.stream);
    return what;
  }

  What order() {
    const bool chain = has("actions") || has("ranks");
    if (chain == has("groups") || has("actions") != has("ranks")) {
      missing("either 'groups', or 'ranks' and 'actions'", chain ? "some of both" : "none");
      return OrderDirective{};
    }
    if (!chain) {
      return OrderDirective{compound<std::vector<std::vector<Filter>>>("groups", read_groups)};
    }
    return OrderChainDirective{ranks(), compound<std::vector<Action>>("actions", read_actions)};
  }

  // Values by key, after check_keys.
  bool has(const std::string& key) const { return raw_.find(key) != nullptr; }
  std::string text(const std::string& key, std::string otherwise) const {
    const RawValue* value = raw_.find(key);
    if (value == nullptr) {
      return otherwise;
    }
    const DirectiveKey* known = find_directive_key(op_, key);
    return known != nullptr && known->scalar.type == Key::Type::choice
               ? known_spelling(value->text, known->scalar.choices)
               : value->text;
  }
  std::uint32_t number(const std::string& key, std::uint32_t otherwise) const {
    const RawValue* value = raw_.find(key);
    return value == nullptr ? otherwise : static_cast<std::uint32_t>(value->integer);
  }
  bool flag(const std::string& key) const {
    const RawValue* value = raw_.find(key);
    return value != nullptr && value->boolean;
  }
  Span span(const std::string& key) const {
    return text(key, "chain") == "step" ? Span::step : Span::chain;
  }
  std::uint64_t bytes(const std::string& key) {
    const RawValue* value = raw_.find(key);
    if (value == nullptr) {
      return 0;
    }
    const auto size = value->kind == RawValue::Kind::integer && value->integer > 0
                          ? std::optional(value->integer)
                      : value->kind == RawValue::Kind::text ? parse_bytes(value->text)
                                                            : std::nullopt;
    if (!size) {
      refuse("config.type",
             path(key) + ": expected a number of bytes above 0, or a text like \"25MiB\", got " +
                 describe(*value),
             value->where);
    }
    return static_cast<std::uint64_t>(size.value_or(0));
  }

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
  Filter filter() { return compound<Filter>("filter", read_filter); }
  Ranks ranks() {
    return compound<Ranks>("ranks", [this](const RawValue& value, const std::string& path) {
      return read_ranks(value, path, mesh_);
    });
  }
  Family family() {
    return compound<Family>("family", [this](const RawValue& value, const std::string& path) {
      return read_family(value, path, mesh_);
    });
  }

  std::string path(const std::string& key) const { return op_ + '.' + key; }
  void missing(const std::string& expected, const std::string& got) {
    refuse("config.missing_key", "[[directive]] " + op_ + ": expected " + expected + ", got " + got,
           raw_.where);
  }
  void refuse(std::string code, std::string message, const Location& where) {
    mistakes_.push_back(error(std::move(code), std::move(message), where));
  }

  const RawValue& raw_;
  const MeshRanks& mesh_;
  Diagnostics& mistakes_;
  std::string op_;
};

// What a plugin that says the same would claim. One claim a thing, at the first table.
class Claims {
 public:
  Claims(const MeshConfig& mesh, const MeshRanks& ranks) : mesh_(mesh), ranks_(ranks) {}

  void add(const Directive& directive) {
    const Provenance& from = directive.from;
    if (std::holds_alternative<SplitDirective>(directive.what)) {
      claim({Claim::Kind::split, "", from});
    } else if (const auto* place = std::get_if<PlaceDirective>(&directive.what)) {
      for (const auto& [axis, size] : mesh_.axes) {
        if (axis != "ep" && size > 1 && !ranks_.extends(place->ranks, axis)) {
          claim({Claim::Kind::axis, axis, from});
        }
      }
    } else if (std::holds_alternative<ShardDirective>(directive.what)) {
      if (mesh_.size("ep") > 1) {
        claim({Claim::Kind::axis, "ep", from});
      }
    } else if (std::holds_alternative<OrderDirective>(directive.what) ||
               std::holds_alternative<OrderChainDirective>(directive.what)) {
      claim({Claim::Kind::order, "", from});
    }
  }
  std::vector<Claim> take() { return std::move(claims_); }

 private:
  void claim(Claim claim) {
    const bool known = std::any_of(claims_.begin(), claims_.end(), [&](const Claim& other) {
      return other.kind == claim.kind && other.name == claim.name;
    });
    if (!known) {
      claims_.push_back(std::move(claim));
    }
  }

  const MeshConfig& mesh_;
  const MeshRanks& ranks_;
  std::vector<Claim> claims_;
};

}  // namespace

Expected<Proposal> read_directives(const Config& config) {
  const MeshRanks mesh(config.mesh);
  Proposal proposal;
  proposal.from = {"job", config.where("directive")};
  proposal.unordered = true;
  Claims claims(config.mesh, mesh);
  Diagnostics mistakes;
  for (const RawValue& table : config.directives) {
    if (auto what = Table(table, mesh, mistakes).read()) {
      proposal.directives.push_back({*std::move(what), {"job", table.where}});
      claims.add(proposal.directives.back());
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  proposal.claims = claims.take();
  return proposal;
}

}  // namespace piper
