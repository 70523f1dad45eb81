// A schedule as a file has it: a row a rank, with the place of every cell for diagnostics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace schedule_file {

struct Position {
  std::size_t line = 1, column = 1;  // in characters, from 1
};

// What is wrong with a file, and where.
struct Malformed : std::runtime_error {
  Malformed(const Position& position, const std::string& what)
      : std::runtime_error(what), where(position) {}
  Position where;
};

enum class Kind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  // Not computed; compared with what follows from the rest.
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  unshard,
  reshard,
  reduce_grad,
};
inline bool is_compute(Kind kind) {
  return kind <= Kind::backward_weight;
}

struct Cell {
  Kind kind = Kind::forward;
  std::uint32_t stage = 0, microbatch = 0;
  std::uint32_t overlap = 0;  // the two parts of an overlapped pair have the same number, not 0
  Position where;
};
std::string to_string(const Cell& cell);  // `0F3`

struct Table {
  std::vector<std::vector<Cell>> rows;
  std::vector<Position> row_where;
  std::string mapping;  // "loop", "v", "bidirectional"; "": not said
  Position end;
};

// Appends the cells of one text: `0F3`, `1SEND_B2`, `2UNSHARD`, `(0F3;3B1)OVERLAP_F_B`, or nothing,
// an idle step. Blanks around it do not count. Throws Malformed.
void read_cell(std::string_view text, Position where, std::vector<Cell>& row);

// A file of comma-separated values, a line a rank (PyTorch's and TorchTitan's format). A byte order
// mark, CRLF, blanks, quotes around cells, trailing commas and lines of different lengths are
// taken.
Table read_csv(std::string_view text);

}  // namespace schedule_file
