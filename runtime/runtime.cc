// The runtime's side of the door: core/runtime_interface.h.
#include "core/runtime_interface.h"

#include "runtime/checkpoint/check_weights.h"
#include "runtime/data/dataset.h"
#include "runtime/data/files.h"
#include "runtime/exec/check_plan.h"
#include "runtime/guarded.h"
#include "runtime/model/build.h"
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
      PIPER_TRY(check_data(job.config, job.model));
      return check_weights(job.config, job.model, options.whole_data);
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
