#include "core/verify/rank_peaks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

namespace piper {
namespace {

// What a rank that evaluates holds for its training alone, by kind.
std::array<std::int64_t, kMemoryKinds> kept_for_training(const Plans& plans, std::uint32_t rank) {
  std::array<std::int64_t, kMemoryKinds> kept{};
  const auto of = [&](MemoryKind kind) -> std::int64_t& {
    return kept[static_cast<std::size_t>(kind)];
  };
  const Plan::Seat seat = plans.train.seat(rank);
  const Program& program = plans.train.programs[seat.program];
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind == Buffer::Kind::parameter_gradient || buffer.kind == Buffer::Kind::optimizer) {
      of(buffer.kind == Buffer::Kind::optimizer ? MemoryKind::optimizer : MemoryKind::gradient) +=
          bytes_of(plans.train, program, seat.coordinate, buffer);
    }
  }
  // The arena is one for both plans.
  const Program& evaluates = plans.evaluate.programs[plans.evaluate.seat(rank).program];
  of(MemoryKind::communication) +=
      std::max<std::int64_t>(0, program.arena_bytes - evaluates.arena_bytes);
  return kept;
}

}  // namespace

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

std::vector<RankPeak> rank_peaks(const Plans& plans, Plan::Kind kind, const ModelGraph& model) {
  if (kind == Plan::Kind::train) {
    return rank_peaks(plans.train, model);
  }
  std::vector<RankPeak> peaks = rank_peaks(plans.evaluate, model);
  for (RankPeak& own : peaks) {
    const auto kept = kept_for_training(plans, own.ranks.front());
    own.peak.bytes += std::accumulate(kept.begin(), kept.end(), std::int64_t{0});
    std::transform(kept.begin(), kept.end(), own.peak.of_kind.begin(), own.peak.of_kind.begin(),
                   std::plus<>());
  }
  return peaks;
}

std::int64_t most_bytes(const Plans& plans, const ModelGraph& model) {
  std::int64_t most = most_bytes(plans.train, model);
  for (std::uint32_t p = 0; p < plans.evaluate.programs.size(); ++p) {
    const auto kept = kept_for_training(plans, plans.evaluate.programs[p].ranks.front());
    most = std::max(
        most, std::accumulate(kept.begin(), kept.end(), peak_bytes(plans.evaluate, model, p, 0)));
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
