// plan.capacity: the bytes that can be live on a rank, at any timing, fit into its memory.
#include <algorithm>
#include <numeric>

#include "core/base/bytes.h"
#include "core/verify/rank_peaks.h"
#include "core/verify/report.h"
#include "core/verify/verify.h"

namespace piper {
namespace {

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

Status check_capacity(const Plans& plans, const ModelGraph& model, std::int64_t capacity,
                      const Location& where) {
  if (most_bytes(plans, model) <= capacity) {
    return {};
  }
  RankPeak most = largest(rank_peaks(plans, Plan::Kind::train, model));
  const bool trains = most.peak.bytes > capacity;
  if (!trains) {
    most = largest(rank_peaks(plans, Plan::Kind::evaluate, model));
  }
  Diagnostic refused =
      error("plan.capacity",
            "expected at most " + human_bytes(capacity) + " on a rank, got " +
                human_bytes(most.peak.bytes) + " on rank " + std::to_string(most.ranks[0]) +
                (trains ? "" : " while evaluating"),
            where);
  if (valid(most.peak.task)) {
    const Plan& plan = trains ? plans.train : plans.evaluate;
    refused.note("the most at " + Report(plan, model).task({most.program, index(most.peak.task)}));
  }
  refused.note(contributors(most.peak));
  return fail(std::move(refused));
}

}  // namespace piper
