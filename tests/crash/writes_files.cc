// A program that writes one file in one of the ways in which Piper does, and ends with 0 where that
// says that all is done.
//
//   piper_writes_files file PATH TEXT       a whole file
//   piper_writes_files log PATH LINE...     a line at a time
//   piper_writes_files cache                a graph in the cache that PIPER_CACHE names
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/log_file.h"
#include "core/base/output_file.h"
#include "core/cli/graph_cache.h"

namespace piper {
namespace {

// x -> loss, with one parameter.
ModelGraph tiny_model() {
  ModelGraph model;
  model.name = "tiny";
  model.parameters = {{"w", DType::float32, {3, 2}, false, {}}};
  model.values = {{"x", DType::int64, {{1, 0}, {0, 4}}, none<RegionId>()},
                  {"", DType::float32, {}, RegionId{0}}};
  Region region;
  region.parameters = {ParameterId{0}};
  region.inputs = {ValueId{0}};
  region.outputs = {ValueId{1}};
  model.regions = {region};
  model.loss = ValueId{1};
  model.labels = ValueId{0};
  return model;
}

Status write_log(const std::string& path, const std::vector<std::string>& lines) {
  PIPER_ASSIGN(LogFile file, LogFile::create(path));
  for (const std::string& line : lines) {
    PIPER_TRY(file.write_line(line));
  }
  return file.flush();
}

Status run(const std::vector<std::string>& arguments) {
  const std::string& verb = arguments.at(0);
  if (verb == "file") {
    return write_file(arguments.at(1), arguments.at(2));
  }
  if (verb == "log") {
    return write_log(arguments.at(1), {arguments.begin() + 2, arguments.end()});
  }
  const GraphCache cache(Config(), "");
  cache.store(tiny_model());
  return {};
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  const piper::Status done = piper::run({argv + 1, argv + argc});
  if (!done) {
    std::fprintf(stderr, "%s\n", piper::to_string(done.error()).c_str());
  }
  return done ? 0 : 1;
}
