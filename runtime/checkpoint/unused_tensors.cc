#include "runtime/checkpoint/unused_tensors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/hf.h"

namespace piper {
namespace {

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
constexpr std::string_view kLayers = "model.layers.";
constexpr std::size_t kShown = 8;

// 3 of "model.layers.3.mlp.up_proj.weight"; -1 for other names
std::int64_t layer_of(std::string_view name) {
  std::int64_t layer = -1;
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    std::from_chars(name.data(), name.data() + name.size(), layer);
  }
  return layer;
}

// Whether two tensors have the same bytes. Reads a megabyte at a time and stops where they differ.
bool equal(const StoredTensor& a, const StoredTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) {
    return false;
  }
  std::ifstream left(a.file, std::ios::binary), right(b.file, std::ios::binary);
  left.seekg(static_cast<std::streamoff>(a.begin));
  right.seekg(static_cast<std::streamoff>(b.begin));
  std::vector<char> from_left(1 << 20), from_right(1 << 20);
  for (std::uint64_t rest = a.end - a.begin; rest > 0;) {
    const auto count = static_cast<std::streamsize>(std::min<std::uint64_t>(rest, 1 << 20));
    if (!left.read(from_left.data(), count) || !right.read(from_right.data(), count) ||
        std::memcmp(from_left.data(), from_right.data(), static_cast<std::size_t>(count)) != 0) {
      return false;
    }
    rest -= static_cast<std::uint64_t>(count);
  }
  return true;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "'" : ", '") + names[i] + "'";
  }
  return names.size() <= kShown ? text
                                : text + " and " + std::to_string(names.size() - kShown) + " more";
}

std::string counted(std::size_t tensors) {
  return std::to_string(tensors) + (tensors == 1 ? " tensor" : " tensors");
}

// Whether it is a part of what one of the model's parameters belongs to: `x.bias` beside the
// parameter `x.weight`.
bool is_part(const std::string& name, const std::set<std::string>& owners) {
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    if (owners.contains(name.substr(0, dot))) {
      return true;
    }
  }
  return false;
}

class Unused {
 public:
  Unused(const Config& config, const ModelGraph& model, const StoredTensors& stored,
         const std::string& path)
      : config_(config), stored_(stored), path_(path) {
    std::set<std::string> parameters;
    for (const Parameter& parameter : model.parameters) {
      parameters.insert(parameter.name);
      owners_.insert(parameter.name.substr(0, parameter.name.rfind('.')));
      layers_ = std::max(layers_, layer_of(parameter.name) + 1);
    }
    for (const auto& [name, tensor] : stored) {
      if (!parameters.contains(name)) {
        names_.push_back(name);
      }
    }
    tied_ =
        parameters.contains(std::string(kEmbedding)) && !parameters.contains(std::string(kHead));
  }

  // Takes the output layer of a tied model out of the list where it is the embedding once more.
  Status check_head() {
    const auto head = std::find(names_.begin(), names_.end(), kHead);
    if (!tied_ || head == names_.end()) {
      return {};
    }
    if (equal(stored_.at(*head), stored_.at(std::string(kEmbedding)))) {
      names_.erase(head);
      return {};
    }
    if (config_.model.tied.has_value()) {
      return {};
    }
    return fail(error("checkpoint.untied_head",
                      "'lm_head.weight' differs from 'model.embed_tokens.weight', and the model is "
                      "tied: model.tied = false takes both, model.tied = true the embedding alone",
                      {stored_.at(*head).file}));
  }

  Status check_undescribed() const {
    std::vector<std::string> layers, parts;
    for (const std::string& name : names_) {
      if (layer_of(name) >= layers_) {
        layers.push_back(name);
      } else if (is_part(name, owners_)) {
        parts.push_back(name);
      }
    }
    if (!layers.empty() && config_.model.layers == 0) {
      return fail(error("checkpoint.extra_tensor",
                        "expected " + std::to_string(layers_) + " layers, got " +
                            counted(layers.size()) + " of more: " + list(layers) +
                            " (model.layers says how many are meant)",
                        {path_}));
    }
    if (!parts.empty()) {
      return fail(error("checkpoint.extra_tensor",
                        "expected the model's parameters alone, got " + counted(parts.size()) +
                            " that would change what its layers compute: " + list(parts),
                        {path_}));
    }
    return {};
  }

  Diagnostics remarks() const {
    if (names_.empty()) {
      return {};
    }
    return {warning("checkpoint.unused_tensor",
                    counted(names_.size()) + " of " + std::to_string(stored_.size()) +
                        (names_.size() == 1 ? " is" : " are") + " not used: " + list(names_),
                    {path_})};
  }

 private:
  const Config& config_;
  const StoredTensors& stored_;
  const std::string& path_;
  std::set<std::string> owners_;  // "x" of every parameter "x.weight"
  std::vector<std::string> names_;
  std::int64_t layers_ = 0;
  bool tied_ = false;
};

}  // namespace

Expected<Diagnostics> check_unused_tensors(const Config& config, const ModelGraph& model,
                                           const StoredTensors& stored, const std::string& path,
                                           bool described) {
  Unused unused(config, model, stored, path);
  if (is_qwen3(config)) {
    PIPER_TRY(unused.check_head());
    if (!described) {
      PIPER_TRY(unused.check_undescribed());
    }
  }
  return unused.remarks();
}

}  // namespace piper
