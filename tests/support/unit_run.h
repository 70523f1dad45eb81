// Runs the orders of a pipeline in the simplest way there is: a forward, an I and a W take 1, a B
// 2, an overlapped pair 3, messages nothing. What the formulas of schedules are checked with;
// shares no code with the planner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace piper::test {

// One action of a table: `0F3`, or `(0F3;3B1)OVERLAP_F_B`, which has two parts.
struct TableAction {
  struct Part {
    char pass = 'F';  // F, B, I, W
    std::uint32_t stage = 0, microbatch = 0;
  };
  std::vector<Part> parts;
};
TableAction parse_action(const std::string& text);  // without parts where it is none

using TableRows = std::vector<std::vector<std::string>>;  // a row a rank

struct UnitRun {
  std::string problem;  // "": every action ran, each once
  std::uint32_t makespan = 0;
  std::vector<std::uint32_t> busy, span;  // by rank: span from its first action's start to its end
  // By rank, at most: forwards whose B or W, or whose B or I, has not run.
  std::vector<std::uint32_t> held, held_until_input;
  std::uint32_t messages = 0;                     // between ranks
  std::vector<std::vector<std::uint32_t>> start;  // by rank and action

  std::uint32_t most_held() const;
};

// A line a rank, a column a unit of time: `F3` on the rank's first stage, `f3` on the second; `.`
// idles, an action longer than 1 is followed by `-`, and `F4+b2` is an overlapped pair.
std::string picture(const TableRows& rows, std::uint32_t stages, std::uint32_t microbatches);

UnitRun run_at_unit_cost(const TableRows& rows, std::uint32_t stages, std::uint32_t microbatches);

}  // namespace piper::test
