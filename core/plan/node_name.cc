#include "core/plan/node_name.h"

#include <algorithm>
#include <map>
#include <utility>

namespace piper {
namespace {

const std::vector<std::string>& tag_names_of(const Plan& plan, const ModelGraph& model) {
  return plan.tag_names.empty() ? model.tag_names : plan.tag_names;
}

std::string number(std::uint32_t value) {
  return std::to_string(value);
}

// Which way an all-to-all goes is seen from what it writes.
NodeIdentity identity(const Plan& plan, std::uint32_t program, const Task& task) {
  NodeIdentity node{task.op,    program,     task.microbatch, task.chunk,
                    task.value, task.bucket, false,           false};
  if (is_routing(task.op)) {
    const Program& own = plan.programs[program];
    for (const BufferId buffer : own.writes_of(task)) {
      const Buffer::Kind kind = own.buffer(buffer).kind;
      node.backward = kind == Buffer::Kind::gradient || kind == Buffer::Kind::routed_gradient;
      node.into_experts = kind == Buffer::Kind::routed || kind == Buffer::Kind::routed_gradient;
    }
  }
  return node;
}

}  // namespace

NodeNames::NodeNames(const std::vector<Chunk>& chunks, const std::vector<std::string>& tag_names) {
  using Stage = std::pair<std::uint32_t, std::uint32_t>;  // program, index of PP
  const auto pp = static_cast<std::uint32_t>(std::find(tag_names.begin(), tag_names.end(), "PP") -
                                             tag_names.begin());
  std::map<Stage, std::vector<std::uint32_t>> pieces;
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    stages_.push_back("c" + number(c) + ".");
    for (const Tag& tag : chunks[c].tags) {
      if (index(tag.name) == pp) {
        pieces[{chunks[c].program, tag.index}].push_back(c);
      }
    }
  }
  for (const auto& [stage, members] : pieces) {
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      stages_[members[i]] = number(stage.second) + (members.size() > 1 ? "." + number(i) : "");
    }
  }
}

NodeNames::NodeNames(const Plan& plan, const ModelGraph& model)
    : NodeNames(plan.chunks, tag_names_of(plan, model)) {}

std::string NodeNames::whole_stage(ChunkId chunk) const {
  const std::string& name = stage(chunk);
  return name.front() == 'c' ? name : name.substr(0, name.find('.'));
}

std::string NodeNames::of(const NodeIdentity& node) const {
  const std::string at = "@" + number(node.program), microbatch = number(node.microbatch);
  const std::string op(to_string(node.op));
  switch (traits(node.op).address) {
    case Address::chunk:
      return stage(node.chunk) + std::string(short_name(node.op)) + microbatch + at;
    case Address::message:
      return op + (valid(node.chunk) ? " grad %" : " %") + number(index(node.value)) +
             (valid(node.chunk) ? " " + stage(node.chunk) : "") + " m" + microbatch + at;
    case Address::route:
      return op + " " + stage(node.chunk) + (node.backward ? "B" : "F") + microbatch +
             (node.into_experts ? " in" : " out") + at;
    case Address::chain:
      return op + " b" + number(index(node.bucket)) + " chain " + microbatch + at;
    case Address::bucket:
      return op + " b" + number(index(node.bucket)) + at;
    case Address::program:
      break;
  }
  return op + at;
}

std::string NodeNames::of(const Plan& plan, std::uint32_t program, const Task& task) const {
  return of(identity(plan, program, task));
}

}  // namespace piper
