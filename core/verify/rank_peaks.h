// The most memory that ranks can need, of ranks that need the same.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/verify/memory.h"

namespace piper {

// Members of a program with equally many rows: coordinates `first` .. `first + ranks.size() - 1`.
struct RankPeak {
  std::uint32_t program = 0, first = 0;
  std::vector<std::uint32_t> ranks;
  Peak peak;
};

// Of a program, or of all in order; more rows first.
std::vector<RankPeak> rank_peaks(const Plan& plan, const ModelGraph& model, std::uint32_t program);
std::vector<RankPeak> rank_peaks(const Plan& plan, const ModelGraph& model);

// The bytes of the rank that needs most.
std::int64_t most_bytes(const Plan& plan, const ModelGraph& model);

// The same of a plan of a job that trains. While it evaluates, what it keeps from step to step,
// gradients, optimizer state and the arena, is there too.
std::vector<RankPeak> rank_peaks(const Plans& plans, Plan::Kind kind, const ModelGraph& model);
std::int64_t most_bytes(const Plans& plans, const ModelGraph& model);

// The one with most bytes; of equal ones the first.
const RankPeak& largest(const std::vector<RankPeak>& peaks);
RankPeak largest(std::vector<RankPeak>&& peaks);

}  // namespace piper
