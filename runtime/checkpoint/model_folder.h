// Puts a model into a folder that may hold one already, so that whatever stops the process or the
// machine, the folder loads as the old model or as the new one, or is refused by Piper and by
// transformers for want of its config.json: never weights of one with a config.json of the other.
//
// Both read config.json and then model.safetensors, and only where that is missing the files that
// model.safetensors.index.json names. So the steps are, each on disk before the next begins:
//
//   1. tokenizer files that the folder lacks       ->  loads as the old model
//   2. the old config.json goes, unless it equals  ->  is refused, or (equal) as before
//      the new one
//   3. model.safetensors is the new one            ->  is refused, or (equal) loads as the new
//   4. config.json is the new one                  ->  loads as the new model
//   5. files that the old index names go           ->  the same, as model.safetensors comes first
//   6. the old index goes                          ->  the same
//
// All bytes are in staging files, and on disk, before step 1. A link in the folder is replaced or
// removed, and what it leads to stays; every other file stays as it is.
//
// No LibTorch.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/output_file.h"

namespace piper {

// What stands beside the weights.
struct ModelFiles {
  std::string config;  // config.json; "": the model has none, and what is there stays
  // Tokenizer files and generation_config.json, by name. Those of a tokenizer are written where
  // the folder has none of another tokenizer.
  std::map<std::string, std::string> companions;
};

// Writes the bytes of model.safetensors.
using WriteWeights = std::function<Status(OutputFile& file)>;

// Names of the files that `ModelFiles::companions` may have.
const std::vector<std::string>& companion_names();

// The steps of putting one model into one folder. Where it ends before the last of them, staging
// files are removed with it.
class ModelReplacement {
 public:
  // Makes the folder, stages all bytes and decides the steps. Errors: checkpoint.write.
  static Expected<ModelReplacement> stage(const std::string& folder, const ModelFiles& files,
                                          const WriteWeights& write, OutputOptions options);

  std::size_t steps() const { return steps_.size(); }
  Status step(std::size_t number) { return steps_[number](); }

 private:
  std::vector<std::function<Status()>> steps_;
};

// All of the steps.
Status replace_model(const std::string& folder, const ModelFiles& files, const WriteWeights& write,
                     OutputOptions options);

}  // namespace piper
