#include "core/plan/plan.h"

#include <algorithm>

namespace piper {

Plan::Seat Plan::seat(std::uint32_t rank) const {
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const std::vector<std::uint32_t>& ranks = programs[p].ranks;
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    if (found != ranks.end()) {
      return {static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(found - ranks.begin())};
    }
  }
  PIPER_CHECK(false, "no program has rank " + std::to_string(rank));
}

Rows cut_rows(Rows whole, std::uint32_t parts, std::uint32_t part) {
  PIPER_CHECK(part < parts, "part " + std::to_string(part) + " of " + std::to_string(parts));
  const std::int64_t each = whole.count / parts;
  const std::int64_t remainder = whole.count % parts;
  return {whole.begin + part * each + std::min<std::int64_t>(part, remainder),
          each + (part < remainder ? 1 : 0)};
}

Rows rows_of(const Plan& plan, const Program& program, std::uint32_t coordinate,
             std::uint32_t microbatch) {
  const auto parts = static_cast<std::uint32_t>(program.ranks.size());
  return cut_rows(cut_rows({0, plan.global_rows}, parts, coordinate), plan.microbatches,
                  microbatch);
}

std::int64_t bytes_of(const Plan& plan, const Program& program, std::uint32_t coordinate,
                      const Buffer& buffer) {
  return buffer.bytes.per_row == 0
             ? buffer.bytes.fixed  // chains of a bucket count on `microbatch`
             : buffer.bytes.at(rows_of(plan, program, coordinate, buffer.microbatch).count);
}

std::string_view to_string(MemoryKind kind) {
  constexpr std::string_view kNames[kMemoryKinds] = {
      "parameter", "gathered", "gradient", "optimizer", "activation", "communication", "workspace"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace piper
