#include "runtime/train/profile.h"

#include <sstream>

#include "core/base/output_file.h"
#include "core/simulate/measured.h"
#include "core/simulate/trace.h"

namespace piper {
namespace {

constexpr const char* kCode = "profiling.unwritable";

}  // namespace

Expected<Profile> Profile::open(const Job& job, const std::string& costs_file) {
  Profile profile;
  profile.trace_file_ = job.config.profiling.trace;
  profile.costs_file_ = costs_file;
  profile.step_ = job.config.training.steps;
  if (!profile.trace_file_.empty()) {
    PIPER_TRY(check_writable(profile.trace_file_,
                             {.code = kCode, .where = job.config.where("profiling.trace")}));
  }
  if (!costs_file.empty()) {
    PIPER_TRY(check_writable(costs_file, {.code = kCode}));
  }
  return profile;
}

bool Profile::wants(std::int64_t step) const {
  return step == step_ && (!trace_file_.empty() || !costs_file_.empty());
}

Status Profile::write(const Job& job, const StepResult& result) {
  constexpr double kMicroseconds = 1e-3;  // a nanosecond
  const Plan& plan = job.plans.train;
  const Spans spans = without_waits(plan, result.times);
  if (!trace_file_.empty()) {
    std::ostringstream text;
    write_trace(text, plan, job.model, spans, kMicroseconds);
    PIPER_TRY(write_file(trace_file_, text.view(),
                         {.code = kCode, .where = job.config.where("profiling.trace")}));
  }
  if (!costs_file_.empty()) {
    PIPER_TRY(write_file(costs_file_, to_toml(measured_costs(plan, job.model, durations_of(spans))),
                         {.code = kCode}));
  }
  return {};
}

}  // namespace piper
