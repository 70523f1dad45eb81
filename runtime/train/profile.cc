#include "runtime/train/profile.h"

#include "core/simulate/measured.h"
#include "core/simulate/trace.h"

namespace piper {
namespace {

Diagnostic unwritable(const std::string& what, const std::string& file, Location where) {
  return error("profiling.unwritable",
               what + ": expected a file that can be written, got '" + file + "'",
               std::move(where));
}

}  // namespace

Expected<Profile> Profile::open(const Job& job, const std::string& costs_file) {
  Profile profile;
  profile.trace_file_ = job.config.profiling.trace;
  profile.costs_file_ = costs_file;
  profile.step_ = job.config.training.steps;
  if (!profile.trace_file_.empty()) {
    profile.trace_.open(profile.trace_file_, std::ios::binary);
    if (!profile.trace_) {
      return fail(
          unwritable("profiling.trace", profile.trace_file_, job.config.where("profiling.trace")));
    }
  }
  if (!costs_file.empty()) {
    profile.costs_.open(costs_file, std::ios::binary);
    if (!profile.costs_) {
      return fail(unwritable("--costs", costs_file, {}));
    }
  }
  return profile;
}

bool Profile::wants(std::int64_t step) const {
  return step == step_ && (trace_.is_open() || costs_.is_open());
}

Status Profile::write(const Job& job, const StepResult& result) {
  constexpr double kMicroseconds = 1e-3;  // a nanosecond
  const Plan& plan = job.plans.train;
  const Spans spans = without_waits(plan, result.times);
  if (trace_.is_open()) {
    write_trace(trace_, plan, job.model, spans, kMicroseconds);
    if (!trace_.flush()) {
      return fail(unwritable("profiling.trace", trace_file_, job.config.where("profiling.trace")));
    }
  }
  if (costs_.is_open()) {
    costs_ << to_toml(measured_costs(plan, job.model, durations_of(spans)));
    if (!costs_.flush()) {
      return fail(unwritable("--costs", costs_file_, {}));
    }
  }
  return {};
}

}  // namespace piper
