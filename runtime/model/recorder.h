// Runs a model function once on the meta device, for a given number of rows, and writes down what
// it declares.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/model/build.h"
#include "runtime/model/region_liveness.h"
#include "runtime/model/region_trace.h"

namespace piper {

class Recorder final : public Build {
 public:
  // `measure`: the memory of regions too.
  Recorder(const Config& config, std::int64_t rows, bool measure);

  // Throws Refused, or what the model throws. Once.
  void run(ModelFunction function);

  // Shapes are as they were for `rows` rows; costs are not filled in.
  LiveModel& model() { return model_; }
  const std::vector<RegionTrace>& traces() const { return traces_; }         // by RegionId
  const std::vector<RegionLiveness>& liveness() const { return liveness_; }  // by RegionId

  at::Tensor input(const std::string& name, const std::vector<std::int64_t>& shape,
                   at::ScalarType dtype) override;
  ParameterHandle parameter(const std::string& name, const std::vector<std::int64_t>& shape,
                            Init init, std::source_location where) override;
  Scope annotate(const std::string& tag, std::int64_t index) override;
  Tensors region(const Tensors& inputs, RegionFunction function,
                 std::source_location where) override;
  void loss(const at::Tensor& sum) override;
  std::int64_t integer(const std::string& key, std::int64_t fallback) override;
  double number(const std::string& key, double fallback) override;
  const Config& config() const override { return config_; }
  at::ScalarType dtype() const override { return to_torch(config_.training.dtype); }

 private:
  ValueId add_value(Value value);
  at::Tensor handle(ValueId id);
  at::Tensor argument(ValueId id) const;
  const OptionValue* key(const std::string& name);
  bool is_frozen(const std::string& parameter);
  void renew(ParameterId id);
  void swap_parameters();
  void check_complete() const;

  const Config& config_;
  std::int64_t rows_;
  bool measure_;
  LiveModel model_;
  // What handles see while a region runs: other tensors than outside, and others in each region
  // that uses them, so that one copied out of a handle is noticed.
  Tensors inside_;  // by ParameterId
  ParameterStorages storages_;
  std::vector<RegionTrace> traces_;
  std::vector<RegionLiveness> liveness_;  // empty unless measured
  std::vector<bool> has_gradient_;        // by ValueId
  Tensors handles_;                       // by ValueId; alive, so addresses are identities
  std::unordered_map<const at::TensorImpl*, ValueId> values_;  // looked up, never walked
  std::vector<Tag> scopes_;
  std::map<std::string, std::int64_t> scope_counts_;
  std::set<std::string> asked_keys_;
  std::vector<bool> freeze_used_;  // by index in [model] freeze
  Location last_region_;
  bool in_region_ = false;
};

}  // namespace piper
