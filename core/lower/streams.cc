#include "core/lower/streams.h"

#include <algorithm>

namespace piper {

std::uint16_t stream_of(Dag& dag, std::uint32_t program, const std::string& name,
                        Stream::Kind kind) {
  std::vector<LogicalStream>& streams = dag.programs[program].streams;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    if (streams[s].name == name) {
      return static_cast<std::uint16_t>(s);
    }
  }
  streams.push_back({name, kind});
  return static_cast<std::uint16_t>(streams.size() - 1);
}

CommId channel(Dag& dag, std::uint32_t from, std::uint32_t to) {
  Communicator pair;
  pair.kind = Communicator::Kind::point_to_point;
  pair.stream = std::to_string(from) + ">" + std::to_string(to);
  pair.from = from;
  pair.to = to;
  const auto known = std::find(dag.communicators.begin(), dag.communicators.end(), pair);
  const auto id = static_cast<std::uint32_t>(known - dag.communicators.begin());
  if (known == dag.communicators.end()) {
    dag.communicators.push_back(std::move(pair));
  }
  return CommId{id};
}

CommId collective(Dag& dag, const std::vector<std::vector<std::uint32_t>>& groups,
                  const std::string& stream) {
  Communicator wanted;
  wanted.stream = stream;
  for (const std::vector<std::uint32_t>& group : groups) {
    wanted.ranks.insert(wanted.ranks.end(), group.begin(), group.end());
  }
  wanted.group_size = groups.size() > 1 ? static_cast<std::uint32_t>(groups[0].size()) : 0;
  const auto known = std::find(dag.communicators.begin(), dag.communicators.end(), wanted);
  const auto id = static_cast<std::uint32_t>(known - dag.communicators.begin());
  if (known == dag.communicators.end()) {
    dag.communicators.push_back(std::move(wanted));
  }
  return CommId{id};
}

NodeId add_collective(Dag& dag, Node node, const std::vector<std::uint32_t>& programs,
                      CommId communicator, Stream::Kind kind) {
  node.communicator = communicator;
  const std::string stream = dag.communicators[index(communicator)].stream;
  const std::uint32_t first = index(dag.next());
  const auto members = static_cast<std::uint32_t>(programs.size());
  for (std::uint32_t i = 0; i < members; ++i) {
    node.program = static_cast<std::uint16_t>(programs[i]);
    node.stream = stream_of(dag, programs[i], stream, kind);
    node.peer = NodeId{first + (i + 1) % members};
    dag.add(node);
  }
  return NodeId{first};
}

}  // namespace piper
