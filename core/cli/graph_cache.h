// Captured graphs, kept between runs: capture needs LibTorch, planning does not.
#pragma once

#include <optional>
#include <string>

#include "core/config/config.h"
#include "core/ir/model_graph.h"

namespace piper {

// One job's place in the cache: PIPER_CACHE, or piper/ in XDG_CACHE_HOME or ~/.cache, below
// graphs/.
class GraphCache {
 public:
  // `runtime` is the file that would capture: another one makes other graphs.
  GraphCache(const Config& config, const std::string& runtime);

  // Nothing where there is no graph for just this model, or none that can be read.
  std::optional<ModelGraph> load() const;

  // A failure costs only time, and is not reported.
  void store(const ModelGraph& model) const;

  const std::string& file() const { return file_; }  // "" = there is no folder for caches

 private:
  std::string key_;  // all that the graph depends on
  std::string file_;
};

}  // namespace piper
