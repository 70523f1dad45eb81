#include "core/verify/verify.h"

#include "core/verify/rules.h"

namespace piper {

// Later rules rely on earlier ones, so the first family that finds something is the last that
// looks.
Status verify(const Plan& plan, const ModelGraph& model) {
  PIPER_TRY(verify(model));
  Report report(plan, model);
  check_structure(report);
  if (!report.ok()) {
    return report.result();
  }
  check_tables(report);
  if (!report.ok()) {
    return report.result();
  }
  check_tasks(report, find_facts(plan.chunks, model));
  if (!report.ok()) {
    return report.result();
  }
  check_gradients(report);
  if (!report.ok()) {
    return report.result();
  }
  check_channels(report);
  check_collectives(report);
  LocalOrder order;
  AccessIndex accesses;
  for (std::uint32_t p = 0; p < plan.programs.size() && !report.full(); ++p) {
    if (!check_cycle(report, p, order)) {
      continue;
    }
    accesses.build(plan.programs[p], order);
    const std::size_t errors = report.count();
    check_accesses(report, p, order, accesses);
    if (report.count() == errors) {
      check_release(report, p, order, accesses);
      check_arena(report, p, order);
    }
  }
  if (report.ok()) {
    check_rendezvous(report);
  }
  return report.result();
}

}  // namespace piper
