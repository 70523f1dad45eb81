#include "tests/support/atomic_pairs.h"

#include <map>

#include "tests/support/plan_edit.h"

namespace piper::test {
namespace {

struct Block {
  std::uint32_t first = 0, last = 0;  // members follow each other
};

std::map<std::uint32_t, Block> blocks_of(const ProgramEdit& program) {
  std::map<std::uint32_t, Block> blocks;
  for (std::uint32_t t = 0; t < program.size(); ++t) {
    if (const std::uint32_t group = program[t].task.overlap; group != 0) {
      blocks.try_emplace(group, Block{t, t}).first->second.last = t;
    }
  }
  return blocks;
}

}  // namespace

Plan with_atomic_pairs(Plan plan) {
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    ProgramEdit program(plan, p);
    const std::map<std::uint32_t, Block> blocks = blocks_of(program);
    for (const auto& [group, block] : blocks) {
      std::vector<Wait>& waits = program[block.first].waits;
      for (std::uint32_t t = block.first + 1; t <= block.last; ++t) {
        std::vector<Wait>& own = program[t].waits;
        waits.insert(waits.end(), own.begin(), own.end());
        own.clear();
      }
    }
    for (std::uint32_t t = 0; t < program.size(); ++t) {
      for (Wait& wait : program[t].waits) {
        const auto block = blocks.find(program[index(wait.task)].task.overlap);
        if (block != blocks.end()) {
          wait.task = TaskId{block->second.last};
          program[block->second.last].task.records = true;
        }
      }
    }
  }
  return plan;
}

}  // namespace piper::test
