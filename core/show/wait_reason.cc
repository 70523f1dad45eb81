#include "core/show/wait_reason.h"

#include <algorithm>
#include <span>
#include <vector>

namespace piper {
namespace {

bool holds(std::span<const BufferId> buffers, BufferId wanted) {
  return std::find(buffers.begin(), buffers.end(), wanted) != buffers.end();
}

bool share_bytes(const Plan& plan, const Program& program, BufferId a, BufferId b) {
  const Buffer &one = program.buffer(a), &other = program.buffer(b);
  return one.in_arena() && other.in_arena() &&
         one.offset < other.offset + bytes_of(plan, program, 0, other) &&
         other.offset < one.offset + bytes_of(plan, program, 0, one);
}

}  // namespace

std::string buffer_text(const Buffer& buffer) {
  std::string text(to_string(buffer.kind));
  if (valid(buffer.value)) {
    text += " %" + std::to_string(index(buffer.value));
  }
  if (valid(buffer.bucket)) {
    text += " b" + std::to_string(index(buffer.bucket));
  }
  if (valid(buffer.chunk)) {
    text += " c" + std::to_string(index(buffer.chunk));
  }
  if (has_microbatch(buffer.kind)) {
    text += " m" + std::to_string(buffer.microbatch);
  } else if (holds_chain(buffer.kind)) {
    text += " chain " + std::to_string(buffer.microbatch);
  }
  return text;
}

std::string temporal_reason(Op op, const char* otherwise) {
  const std::string_view how = traits(op).put_off;
  return how.empty() ? otherwise : std::string(how) + " no earlier than this";
}

std::string wait_reason(const Plan& plan, const Program& program, const Dag& dag,
                        const EdgeValues& edge_values, TaskId waiter_id, const Wait& wait) {
  const Task &waiter = program.task(waiter_id), &awaited = program.task(wait.task);
  const auto reads = program.reads_of(waiter), writes = program.writes_of(waiter);
  const auto its_reads = program.reads_of(awaited), its_writes = program.writes_of(awaited);
  std::vector<std::string> reasons;
  const auto say = [&](const std::string& reason) {
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(reason);
    }
  };
  for (const BufferId buffer : reads) {
    if (holds(its_writes, buffer)) {
      say("reads " + buffer_text(program.buffer(buffer)) + ", which it writes");
    }
  }
  for (const BufferId buffer : writes) {
    const Buffer& written = program.buffer(buffer);
    if (holds(reads, buffer) && holds(its_writes, buffer)) {
      continue;  // said
    }
    if (holds(program.frees_of(awaited), buffer)) {
      say("allocates " + buffer_text(written) + " again, which it frees");
    } else if (holds(its_reads, buffer) || holds(its_writes, buffer)) {
      say("writes " + buffer_text(written) + ", which it uses");
    }
    if (written.alloc != waiter_id || !written.in_arena()) {
      continue;
    }
    for (const BufferId freed : program.frees_of(awaited)) {
      if (freed != buffer && share_bytes(plan, program, freed, buffer)) {
        say("reuses bytes of the arena, where it frees " + buffer_text(program.buffer(freed)));
      }
    }
  }
  for (const BufferId buffer : program.frees_of(waiter)) {
    if (holds(its_reads, buffer) || (holds(its_writes, buffer) && !holds(reads, buffer))) {
      say("frees " + buffer_text(program.buffer(buffer)) + ", which it uses");
    }
  }
  if (!wait.previous) {
    const bool edge = std::any_of(dag.edges.begin(), dag.edges.end(), [&](const Edge& e) {
      return e.from == awaited.node && e.to == waiter.node;
    });
    if (edge && edge_values.of({awaited.node, waiter.node}).empty()) {
      say(temporal_reason(waiter.op, "ordered after it"));
    }
  }
  std::string text;
  for (const std::string& reason : reasons) {
    text += (text.empty() ? "" : "; ") + reason;
  }
  return text.empty() ? "what comes before it on its stream" : text;
}

}  // namespace piper
