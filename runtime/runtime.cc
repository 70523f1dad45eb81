// The runtime's side of the door: core/runtime_interface.h.
#include "core/runtime_interface.h"

#include <cstdio>

#include "runtime/checkpoint/check_weights.h"
#include "runtime/data/check_data.h"
#include "runtime/data/files.h"
#include "runtime/exec/check_plan.h"
#include "runtime/metrics/display.h"
#include "runtime/model/build.h"
#include "runtime/models/find_model.h"
#include "runtime/train/guarded.h"
#include "runtime/train/train.h"
#include "runtime/train/verify.h"

namespace piper {
namespace {

// The outputs, against the inputs and the data files.
Status check_files(const Config& config, const CheckOptions& options) {
  PIPER_ASSIGN(const std::vector<SourceFile> data,
               find_files(config.training.dataset_path, config.where("training.dataset_path")));
  std::vector<Input> inputs;
  for (const SourceFile& file : data) {
    inputs.push_back({"training.dataset_path", file.path});
  }
  inputs.insert(inputs.end(), options.inputs.begin(), options.inputs.end());
  return check_outputs(options.outputs, inputs);
}

Expected<DataReport> look_at_data(const Job& job, const CheckOptions& options) {
  const bool shown = options.progress && is_terminal(stderr);
  Display display(stdout, shown ? stderr : nullptr);
  return check_data(job.config, job.model,
                    {.whole = options.whole_data,
                     .progress = [&](const std::string& text) { display.progress(text); }});
}

class TorchRuntime final : public Runtime {
 public:
  Expected<ModelGraph> capture(const Config& config) override {
    return guarded([&]() -> Expected<ModelGraph> {
      PIPER_ASSIGN(LiveModel model, build_model(config, /*measure=*/true));
      return std::move(model.graph);
    });
  }

  Expected<CheckReport> check(const Job& job, const CheckOptions& options) override {
    return guarded([&]() -> Expected<CheckReport> {
      PIPER_TRY(check_files(job.config, options));
      PIPER_ASSIGN(DataReport data, look_at_data(job, options));
      PIPER_ASSIGN(CheckReport report, check_weights(job.config, job.model, options.whole_data));
      report.remarks.insert(report.remarks.begin(), data.remarks.begin(), data.remarks.end());
      if (!options.whole_data) {
        report.lines.push_back(std::move(data.looked_at));
      }
      return report;
    });
  }

  Status check_plans(const Job& job) override {
    PIPER_TRY(check_plan(job.plans.train, job.model));
    return check_plan(job.plans.evaluate, job.model);
  }

  Expected<TrainSummary> train(const Job& job, const TrainOptions& options) override {
    return guarded([&] { return piper::train(job, options); });
  }

  Expected<VerifyReport> verify(const Job& job, const VerifyOptions& options) override {
    return guarded([&] { return verify_parity(job, options); });
  }
};

}  // namespace
}  // namespace piper

extern "C" __attribute__((visibility("default"))) piper::Runtime* piper_runtime() {
  static piper::TorchRuntime runtime;
  return &runtime;
}
