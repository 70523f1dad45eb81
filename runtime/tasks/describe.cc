#include "runtime/tasks/describe.h"

namespace piper {
namespace {

std::string chunk_name(const Plan& plan, const ModelGraph& model, ChunkId id) {
  const std::vector<std::string>& names = plan.tag_names.empty() ? model.tag_names : plan.tag_names;
  for (const Tag& tag : plan.chunks[index(id)].tags) {
    if (names[index(tag.name)] == "PP") {
      return "stage " + std::to_string(tag.index);
    }
  }
  return "chunk " + std::to_string(index(id));
}

}  // namespace

std::string describe(const Plan& plan, const ModelGraph& model, const Task& task) {
  std::string text(to_string(task.op));
  if (valid(task.chunk) && !is_communication(task.op)) {
    text += " of " + chunk_name(plan, model, task.chunk);
  } else if (valid(task.value)) {
    text += " of value " + std::to_string(index(task.value));
  } else if (valid(task.bucket)) {
    return text + " of bucket " + std::to_string(index(task.bucket));
  } else {
    return text;
  }
  return text + ", micro-batch " + std::to_string(task.microbatch);
}

std::string describe(const Plan& plan, const ModelGraph& model, std::uint32_t rank,
                     const Program& program, const Task& task) {
  return describe(plan, model, task) + " on stream " + program.streams[index(task.stream)].name +
         " of rank " + std::to_string(rank);
}

}  // namespace piper
