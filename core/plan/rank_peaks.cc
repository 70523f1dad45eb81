#include "core/plan/rank_peaks.h"

#include <algorithm>
#include <utility>

namespace piper {

// Coordinates before `more` have a row more than the others (cut_rows).
std::vector<RankPeak> rank_peaks(const Plan& plan, const ModelGraph& model, std::uint32_t program) {
  const std::vector<std::uint32_t>& ranks = plan.programs[program].ranks;
  const auto more = static_cast<std::uint32_t>(plan.global_rows % std::ssize(ranks));
  std::vector<RankPeak> peaks;
  for (const auto& [first, end] :
       {std::pair{0U, more}, std::pair{more, std::uint32_t(ranks.size())}}) {
    if (first < end) {
      peaks.push_back({program,
                       first,
                       {ranks.begin() + first, ranks.begin() + end},
                       memory_peak(plan, model, program, first)});
    }
  }
  return peaks;
}

std::vector<RankPeak> rank_peaks(const Plan& plan, const ModelGraph& model) {
  std::vector<RankPeak> all;
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    for (RankPeak& peak : rank_peaks(plan, model, p)) {
      all.push_back(std::move(peak));
    }
  }
  return all;
}

std::int64_t most_bytes(const Plan& plan, const ModelGraph& model) {
  std::int64_t most = 0;
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    most = std::max(most, peak_bytes(plan, model, p, 0));  // no rank has more rows
  }
  return most;
}

const RankPeak& largest(const std::vector<RankPeak>& peaks) {
  return *std::max_element(peaks.begin(), peaks.end(), [](const RankPeak& a, const RankPeak& b) {
    return a.peak.bytes < b.peak.bytes;
  });
}

RankPeak largest(std::vector<RankPeak>&& peaks) {
  return largest(std::as_const(peaks));
}

}  // namespace piper
