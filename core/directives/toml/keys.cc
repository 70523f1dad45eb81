#include "core/directives/toml/keys.h"

#include <algorithm>
#include <utility>

namespace piper {
namespace {

using Form = DirectiveKey::Form;

constexpr Bounds kIndex{.low = 0, .high = 4294967294.0};
constexpr Bounds kCount{.low = 1, .high = 4294967294.0};

DirectiveKey made(std::string_view path, Form form, std::string_view help) {
  const std::size_t dot = path.find('.');
  const bool required = path.ends_with('!');
  DirectiveKey key;
  key.op = path.substr(0, dot);
  key.name = path.substr(dot + 1, path.size() - dot - 1 - (required ? 1 : 0));
  key.form = form;
  key.required = required;
  key.scalar.section = "directive";
  key.scalar.name = key.name;
  key.scalar.help = help;
  return key;
}

DirectiveKey plain(std::string_view path, Key::Type type, std::string_view help,
                   Bounds bounds = {}) {
  DirectiveKey key = made(path, Form::plain, help);
  key.scalar.type = type;
  key.scalar.bounds = bounds;
  return key;
}

DirectiveKey one_of(std::string_view path, std::vector<std::string> choices,
                    std::string_view help) {
  DirectiveKey key = plain(path, Key::Type::choice, help);
  key.scalar.choices = std::move(choices);
  return key;
}

// `!` after a name: the key must be there.
std::vector<DirectiveKey> make_keys() {
  using Type = Key::Type;
  const auto which = [](std::string_view path) {
    return made(path, Form::filter, "the chunks that it is about");
  };
  const auto groups_of_ranks = [](const std::string& op) {
    return made(
        op + ".family", Form::family,
        "groups of ranks: lists of ranks, or the mesh axes along which they lie; not given: "
        "each place is one group");
  };
  return {
      which("tag.filter!"),
      plain("tag.name!", Type::text, "the tag that the regions get"),
      plain("tag.index", Type::integer, "its index", kIndex),
      plain("tag.parts", Type::integer,
            "instead of `index`: cut the regions into that many consecutive parts", kCount),
      one_of("tag.by", {"flops", "bytes", "count"},
             "with `parts`: what is balanced; not given: `flops`"),
      made("tag.boundaries", Form::indices,
           "instead of `index`: the first unit of each part but the first"),
      plain(
          "tag.over", Type::text,
          "with `parts` or `boundaries`: the tag whose indices are the units; not given: `layer`"),

      which("split.filter"),
      plain("split.n!", Type::integer, "the number of micro-batches", kCount),
      plain("split.dim", Type::text, "the dimension that is cut; not given: `MB`, the rows"),

      which("split_backward.filter!"),

      which("place.filter!"),
      made("place.ranks!", Form::ranks,
           "a list of ranks, or mesh coordinates: `{ pp = 0 }` is all ranks of that coordinate"),
      plain("place.stream", Type::text, "the compute stream"),

      which("replicate.filter!"),
      groups_of_ranks("replicate"),
      plain("replicate.shard_optimizer", Type::boolean, "shard the optimizer's state (ZeRO 1)"),
      plain("replicate.shard_grads", Type::boolean, "and gradients (ZeRO 2)"),
      plain("replicate.shard_params", Type::boolean, "and parameters (ZeRO 3)"),
      made("replicate.bucket_bytes", Form::bytes,
           "bytes of parameters in a bucket, as a number or `\"25MiB\"`; not given: a bucket a "
           "chunk"),
      plain("replicate.reduce_stream", Type::text, "where gradients are reduced"),
      plain("replicate.gather_stream", Type::text, "where parameters are gathered"),
      plain("replicate.prefetch", Type::integer, "chains that are gathered ahead", kIndex),
      one_of("replicate.keep_gathered", {"chain", "step"}, "how long gathered parameters are kept"),
      one_of("replicate.reduce", {"chain", "step"}, "how often gradients are reduced"),

      which("shard.filter!"),
      groups_of_ranks("shard"),
      plain("shard.stream", Type::text, "where the all-to-alls run"),

      made("order.groups", Form::groups, "a list of groups, each a list of filters"),
      made("order.ranks", Form::ranks, "with `actions`: the ranks of the place"),
      made("order.actions", Form::actions, "a chain of actions, as a text or a list of texts"),
  };
}

std::string form_text(const DirectiveKey& key) {
  switch (key.form) {
    case Form::plain:
      return expectation(key.scalar);
    case Form::filter:
      return "a filter";
    case Form::indices:
      return "a list of indices";
    case Form::ranks:
      return "ranks or coordinates";
    case Form::family:
      return "groups of ranks or axes";
    case Form::groups:
      return "groups of filters";
    case Form::actions:
      return "actions";
    case Form::bytes:
      return "a size";
  }
  return "?";
}

}  // namespace

std::span<const DirectiveKey> directive_keys() {
  static const std::vector<DirectiveKey> keys = make_keys();
  return keys;
}

const DirectiveKey* find_directive_key(std::string_view op, std::string_view name) {
  for (const DirectiveKey& key : directive_keys()) {
    if (key.op == op && key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

const std::vector<std::string>& directive_ops() {
  static const std::vector<std::string> ops = [] {
    std::vector<std::string> names;
    for (const DirectiveKey& key : directive_keys()) {
      if (std::find(names.begin(), names.end(), key.op) == names.end()) {
        names.push_back(key.op);
      }
    }
    return names;
  }();
  return ops;
}

std::vector<std::string> directive_key_names(std::string_view op) {
  std::vector<std::string> names;
  for (const DirectiveKey& key : directive_keys()) {
    if (key.op == op) {
      names.push_back(key.name);
    }
  }
  return names;
}

std::string directive_reference() {
  std::string text = "| op | key | value | meaning |\n| --- | --- | --- | --- |\n";
  for (const DirectiveKey& key : directive_keys()) {
    text += "| `" + key.op + "` | `" + key.name + "`" + (key.required ? " (required)" : "") +
            " | " + form_text(key) + " | " + key.scalar.help + " |\n";
  }
  return text;
}

}  // namespace piper
