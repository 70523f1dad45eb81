// Whether a table can be run, before anything is planned from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "table.h"

namespace schedule_file {

enum class Mapping : std::uint8_t { any, loop, v, bidirectional };

struct Expected {
  std::uint32_t ranks = 1, microbatches = 1;
  std::string ranks_name = "pp";  // of the axis, for messages
  Mapping mapping = Mapping::any;
};

// The rank of each stage; bidirectional: for the first half of the micro-batches.
//
// Checks that there is a row a rank; that every stage runs every micro-batch once, on its one rank
// (bidirectional: two): a forward, then B, or I and then W; that stages are where the mapping has
// them; and that the rows, each run in its order, do not wait for each other for ever. Throws
// Malformed.
std::vector<std::uint32_t> check(const Table& table, const Expected& expected);

// Sends, receives, UNSHARD, RESHARD and REDUCE_GRAD against what follows from the computations: one
// message for each value or gradient that crosses ranks, sent after it is made and received before
// it is used; a stage gathered whenever it computes; its gradients reduced once, after its last
// backward. One line for each kind of difference, with the first place and how many there are; none
// for kinds that the file leaves out.
std::vector<std::string> differences(const Table& table, const std::vector<std::uint32_t>& rank_of,
                                     Mapping mapping, std::uint32_t microbatches);

}  // namespace schedule_file
