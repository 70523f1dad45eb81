// plan.capacity: the bytes that can be live on a rank, at any timing, fit into its memory.
#include <algorithm>
#include <numeric>

#include "core/base/bytes.h"
#include "core/verify/report.h"
#include "core/verify/verify.h"

namespace piper {
namespace {

struct Rank {
  std::uint32_t program = 0, coordinate = 0;
  Peak peak;
};

// The rank that needs most; of equal ones the first. The first and the last of a place have as many
// rows as any.
Rank neediest(const Plan& plan, const ModelGraph& model) {
  Rank most;
  std::int64_t bytes = -1;
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    const auto last = static_cast<std::uint32_t>(plan.programs[p].ranks.size() - 1);
    for (std::uint32_t coordinate = 0; coordinate <= last; coordinate += std::max(1U, last)) {
      if (const std::int64_t own = peak_bytes(plan, model, p, coordinate); own > bytes) {
        bytes = own;
        most = {p, coordinate, {}};
      }
    }
  }
  most.peak = memory_peak(plan, model, most.program, most.coordinate);
  return most;
}

// `2.0 GiB of activation, 1.0 GiB of optimizer, ...`, the largest first.
std::string contributors(const Peak& peak) {
  std::array<std::size_t, kMemoryKinds> kinds{};
  std::iota(kinds.begin(), kinds.end(), 0U);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&](std::size_t a, std::size_t b) { return peak.of_kind[a] > peak.of_kind[b]; });
  std::string text;
  for (const std::size_t kind : kinds) {
    if (peak.of_kind[kind] > 0) {
      text += (text.empty() ? "" : ", ") + human_bytes(peak.of_kind[kind]) + " of " +
              std::string(to_string(static_cast<MemoryKind>(kind)));
    }
  }
  return text;
}

}  // namespace

Status check_capacity(const Plan& plan, const ModelGraph& model, std::int64_t capacity,
                      const Location& where) {
  const Rank most = neediest(plan, model);
  if (most.peak.bytes <= capacity) {
    return {};
  }
  const Program& program = plan.programs[most.program];
  Diagnostic refused = error("plan.capacity",
                             "expected at most " + human_bytes(capacity) + " on a rank, got " +
                                 human_bytes(most.peak.bytes) + " on rank " +
                                 std::to_string(program.ranks[most.coordinate]) +
                                 (plan.kind == Plan::Kind::evaluate ? " while evaluating" : ""),
                             where);
  if (valid(most.peak.task)) {
    refused.note("the most at " + Report(plan, model).task({most.program, index(most.peak.task)}));
  }
  refused.note(contributors(most.peak));
  return fail(std::move(refused));
}

}  // namespace piper
