#include "core/show/memory_text.h"

#include "core/base/bytes.h"
#include "core/base/table.h"
#include "core/plan/node_name.h"
#include "core/plan/text.h"
#include "core/verify/rank_peaks.h"

namespace piper {

std::string memory_text(const Plans& plans, const ModelGraph& model,
                        std::optional<std::uint32_t> program, const std::string& margin) {
  std::vector<std::vector<std::string>> rows{{"memory", "ranks", "peak", "at"}};
  for (std::size_t kind = 0; kind < kMemoryKinds; ++kind) {
    rows[0].emplace_back(to_string(static_cast<MemoryKind>(kind)));
  }
  for (const Plan* const plan : {&plans.train, &plans.evaluate}) {
    const NodeNames names(*plan, model);
    for (const RankPeak& own : rank_peaks(plans, plan->kind, model)) {
      if (program && own.program != *program) {
        continue;
      }
      const Program& its = plan->programs[own.program];
      std::vector<std::string>& row = rows.emplace_back();
      row = {plan->kind == Plan::Kind::train ? "train" : "evaluate", ranges(own.ranks),
             human_bytes(own.peak.bytes),
             valid(own.peak.task) ? names.of(*plan, own.program, its.task(own.peak.task)) : "-"};
      for (const std::int64_t bytes : own.peak.of_kind) {
        row.push_back(human_bytes(bytes));
      }
    }
  }
  return table(rows, margin);
}

}  // namespace piper
