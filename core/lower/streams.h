// Streams and communicators of a DAG, found by name or made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/lower/dag.h"

namespace piper {

std::uint16_t stream_of(Dag& dag, std::uint32_t program, const std::string& name,
                        Stream::Kind kind);

// The one communicator of a directed pair of programs, and of a (group, stream). `groups` are lists
// of ranks, equal in size and disjoint.
CommId channel(Dag& dag, std::uint32_t from, std::uint32_t to);
CommId collective(Dag& dag, const std::vector<std::vector<std::uint32_t>>& groups,
                  const std::string& stream);

// Adds one node of a collective for each program, linked in a ring. Returns the first; the others
// follow it.
NodeId add_collective(Dag& dag, Node node, const std::vector<std::uint32_t>& programs,
                      CommId communicator, Stream::Kind kind = Stream::Kind::communication);

}  // namespace piper
