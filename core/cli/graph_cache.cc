#include "core/cli/graph_cache.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "core/base/cache_folder.h"
#include "core/base/hash.h"
#include "core/base/output_file.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "piper-graph-cache 1 ";

std::string hexadecimal(std::uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

std::string read_file(const fs::path& file) {
  std::stringstream content;
  content << std::ifstream(file, std::ios::binary).rdbuf();
  return content.str();
}

// Which library it is, without reading it.
std::string identity(const std::string& file) {
  std::error_code failed;
  const fs::path path = fs::weakly_canonical(file, failed);
  const std::uintmax_t size = fs::file_size(path, failed);
  const auto time = fs::last_write_time(path, failed).time_since_epoch().count();
  return failed ? path.string() + " missing"
                : path.string() + ' ' + std::to_string(size) + ' ' + std::to_string(time);
}

std::string make_key(const Config& config, const std::string& runtime) {
  std::string key = "version " PIPER_VERSION "\nruntime " + identity(runtime) + '\n';
  key += model_key(config);
  // A model may refuse a kind of data (bytes need a vocabulary of 257).
  key += config.training.dataset == Dataset::text ? "text\n" : "jsonl\n";
  if (!config.model.library.empty()) {
    key += "library " + identity(config.model.library) + '\n';
  }
  if (!config.model.hf_assets_path.empty()) {
    const std::string text = read_file(fs::path(config.model.hf_assets_path) / "config.json");
    key += "config.json " + std::to_string(text.size()) + ' ' + hexadecimal(fnv1a(text)) + '\n';
  }
  return key;
}

}  // namespace

GraphCache::GraphCache(const Config& config, const std::string& runtime)
    : key_(make_key(config, runtime)) {
  if (const fs::path folder = cache_folder(); !folder.empty()) {
    file_ = folder / "graphs" / (hexadecimal(fnv1a(key_)) + ".graph");
  }
}

std::optional<ModelGraph> GraphCache::load() const {
  if (file_.empty()) {
    return std::nullopt;
  }
  const std::string content = read_file(file_);
  const std::string head = std::string(kMagic) + std::to_string(key_.size()) + '\n' + key_;
  if (!content.starts_with(head)) {
    return std::nullopt;
  }
  auto model = parse_model_graph(std::string_view(content).substr(head.size()), file_);
  if (!model || !verify(*model)) {
    return std::nullopt;
  }
  return std::move(*model);
}

void GraphCache::store(const ModelGraph& model) const {
  if (file_.empty()) {
    return;
  }
  const std::string text =
      std::string(kMagic) + std::to_string(key_.size()) + '\n' + key_ + print(model);
  [[maybe_unused]] const Status written = write_file(file_, text);
}

}  // namespace piper
