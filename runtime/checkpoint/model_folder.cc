#include "runtime/checkpoint/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace piper {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kGeneration = "generation_config.json";

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  return stream ? std::optional(std::move(text)) : std::nullopt;
}

// A file, a link (also one to nothing) or anything else of that name.
bool is_there(const fs::path& path) {
  std::error_code failure;
  return fs::exists(fs::symlink_status(path, failure));
}

// Removes a name, not what a link leads to.
Status remove_file(const fs::path& path, const OutputOptions& options) {
  std::error_code failure;
  fs::remove(path, failure);
  return failure ? fail(unwritable(path.string(), failure.value(), options)) : Status();
}

// The weights' files that the folder's index names, apart from the one that is written.
std::set<fs::path> indexed_files(const fs::path& folder) {
  std::set<fs::path> files;
  std::ifstream stream(folder / kIndex, std::ios::binary);
  const auto index = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return files;
  }
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const fs::path name = file.is_string() ? file.get<std::string>() : "";
    std::error_code failure;
    if (!name.has_parent_path() && name.extension() == ".safetensors" && name != kWeights &&
        is_there(folder / name) && !fs::is_directory(fs::symlink_status(folder / name, failure))) {
      files.insert(folder / name);
    }
  }
  return files;
}

// Those of `companions` that the folder lacks and that go with what it has.
std::vector<std::string> missing_companions(const fs::path& folder, const ModelFiles& files) {
  bool another_tokenizer = false;
  for (const std::string& name : companion_names()) {
    const auto ours = files.companions.find(name);
    const bool equal = ours != files.companions.end() && read_file(folder / name) == ours->second;
    another_tokenizer |= name != kGeneration && is_there(folder / name) && !equal;
  }
  std::vector<std::string> missing;
  for (const auto& [name, text] : files.companions) {
    if (!is_there(folder / name) && (name == kGeneration || !another_tokenizer)) {
      missing.push_back(name);
    }
  }
  return missing;
}

}  // namespace

const std::vector<std::string>& companion_names() {
  static const auto& names = *new std::vector<std::string>{"added_tokens.json",
                                                           "chat_template.jinja",
                                                           "chat_template.json",
                                                           kGeneration,
                                                           "merges.txt",
                                                           "special_tokens_map.json",
                                                           "tokenizer.json",
                                                           "tokenizer.model",
                                                           "tokenizer_config.json",
                                                           "vocab.json",
                                                           "vocab.txt"};
  return names;
}

Expected<ModelReplacement> ModelReplacement::stage(const std::string& folder,
                                                   const ModelFiles& files,
                                                   const WriteWeights& write,
                                                   OutputOptions options) {
  options.replace_link = true;
  PIPER_TRY(make_folder(folder, options));
  const fs::path root(folder);
  const auto staged = [&](const std::string& name) -> Expected<std::shared_ptr<OutputFile>> {
    PIPER_ASSIGN(OutputFile file, OutputFile::create((root / name).string(), options));
    return std::make_shared<OutputFile>(std::move(file));
  };

  PIPER_ASSIGN(const std::shared_ptr<OutputFile> weights, staged(kWeights));
  PIPER_TRY(write(*weights));
  PIPER_TRY(weights->stage());
  const auto with_text = [&](const std::string& name,
                             const std::string& text) -> Expected<std::shared_ptr<OutputFile>> {
    PIPER_ASSIGN(std::shared_ptr<OutputFile> file, staged(name));
    PIPER_TRY(file->write(text));
    PIPER_TRY(file->stage());
    return file;
  };

  ModelReplacement replacement;
  const auto then = [&](std::function<Status()> change) {
    replacement.steps_.push_back([change = std::move(change), folder, options]() -> Status {
      PIPER_TRY(change());
      return flush_folder(folder, options);
    });
  };
  for (const std::string& name : missing_companions(root, files)) {
    PIPER_ASSIGN(const auto file, with_text(name, files.companions.at(name)));
    then([file] { return file->publish(); });
  }
  std::shared_ptr<OutputFile> config;
  if (!files.config.empty()) {
    PIPER_ASSIGN(config, with_text(kConfig, files.config));
    if (is_there(root / kConfig) && read_file(root / kConfig) != files.config) {
      then([=] { return remove_file(root / kConfig, options); });
    }
  }
  then([weights] { return weights->publish(); });
  if (config) {
    then([config] { return config->publish(); });
  }
  if (const auto old = indexed_files(root); !old.empty()) {
    then([=]() -> Status {
      for (const fs::path& file : old) {
        PIPER_TRY(remove_file(file, options));
      }
      return {};
    });
  }
  if (is_there(root / kIndex)) {
    then([=] { return remove_file(root / kIndex, options); });
  }
  return replacement;
}

Status replace_model(const std::string& folder, const ModelFiles& files, const WriteWeights& write,
                     OutputOptions options) {
  PIPER_ASSIGN(ModelReplacement replacement,
               ModelReplacement::stage(folder, files, write, std::move(options)));
  for (std::size_t step = 0; step < replacement.steps(); ++step) {
    PIPER_TRY(replacement.step(step));
  }
  return {};
}

}  // namespace piper
