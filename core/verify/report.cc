#include "core/verify/report.h"

#include "core/plan/ranks_text.h"
#include "core/plan/text.h"
#include "core/verify/strategy_note.h"

namespace piper {

Status Report::result() {
  if (errors_.empty()) {
    return {};
  }
  return fail(std::move(errors_));
}

void Report::add(Diagnostic diagnostic) {
  if (!full()) {
    errors_.push_back(std::move(diagnostic));
  }
}

void Report::add(std::string code, std::string message) {
  add(error(std::move(code), std::move(message)));
}

void Report::add(std::string code, std::string message, TaskPlace at) {
  if (full()) {
    return;
  }
  Diagnostic diagnostic = error(std::move(code), std::move(message), where(at));
  note_strategy(diagnostic, plan, at);
  add(std::move(diagnostic));
}

void note_strategy(Diagnostic& diagnostic, const Plan& plan, TaskPlace at) {
  const Task& task = plan.programs[at.program].tasks[at.task];
  if (index(task.node) < plan.origin_of_node.size()) {
    const std::uint32_t origin = plan.origin_of_node[index(task.node)];
    if (origin < plan.origins.size() && plan.origins[origin].plugin != "core") {
      diagnostic.note("from strategy '" + plan.origins[origin].plugin + "'",
                      plan.origins[origin].where);
    }
  }
}

Location Report::where(TaskPlace at) const {
  const Task& task = plan.programs[at.program].tasks[at.task];
  if (index(task.node) >= plan.origin_of_node.size()) {
    return {};
  }
  const std::uint32_t origin = plan.origin_of_node[index(task.node)];
  return origin < plan.origins.size() ? plan.origins[origin].where : Location{};
}

std::string Report::ranks(const std::vector<std::uint32_t>& ranks) const {
  return ranks_text(ranks);
}

std::string Report::buffer(const Buffer& buffer) const {
  std::string text(to_string(buffer.kind));
  if (held_by(buffer.kind) == Holds::program) {
    return "buffer " + text;
  }
  if (valid(buffer.value)) {
    text += " %" + std::to_string(index(buffer.value));
  }
  if (has_microbatch(buffer.kind)) {
    text += " mb " + std::to_string(buffer.microbatch);
  }
  if (valid(buffer.chunk)) {
    text += " of " + tags_of(plan, model, buffer.chunk);
  }
  if (valid(buffer.bucket)) {
    text += " of bucket " + std::to_string(index(buffer.bucket));
  }
  if (holds_chain(buffer.kind)) {
    text += " chain " + std::to_string(buffer.microbatch);
  }
  return text;
}

std::string Report::task(TaskPlace at) const {
  const Program& program = plan.programs[at.program];
  const Task& task = program.tasks[at.task];
  std::string text(to_string(task.op));
  if (is_point_to_point(task.op)) {
    const auto buffers = traits(task.op).direction == Direction::out ? program.reads_of(task)
                                                                     : program.writes_of(task);
    text += buffers.empty() || index(buffers[0]) >= program.buffers.size()
                ? " of %" + std::to_string(index(task.value))
                : " of " + buffer(program.buffers[index(buffers[0])]);
  } else {
    if (valid(task.chunk)) {
      text += ' ' + tags_of(plan, model, task.chunk) + " mb " + std::to_string(task.microbatch);
    }
    if (valid(task.bucket)) {
      text += " of bucket " + std::to_string(index(task.bucket));
    }
    if (counts_chains(task.op)) {
      text += " chain " + std::to_string(task.microbatch);
    }
  }
  text += " on " + ranks(program.ranks);
  if (index(task.stream) < program.streams.size()) {
    text += " (stream " + program.streams[index(task.stream)].name + ")";
  }
  return text;
}

}  // namespace piper
