// A model on one device, run region by region with plain autograd: what every plan must equal.
#pragma once

#include <gtest/gtest.h>

#include <ATen/ops/empty.h>

#include <map>
#include <string>
#include <utility>

#include "runtime/model/build.h"

namespace piper {

// Its value, or a failed test with the errors' text.
template <typename T>
T value_of(Expected<T> expected) {
  EXPECT_TRUE(expected.has_value()) << to_string(expected.error());
  if (!expected) {
    throw std::runtime_error("no value");
  }
  return std::move(*expected);
}

class RunningModel {
 public:
  // Initial values from the job's seed, or `weights` by name.
  explicit RunningModel(LiveModel live, std::uint64_t seed = 0) : live_(std::move(live)) {
    for (std::size_t i = 0; i < live_.parameters.size(); ++i) {
      const Parameter& parameter = live_.graph.parameters[i];
      set(i, initial_value(live_.inits[i], parameter.name, parameter.shape,
                           to_torch(parameter.dtype), seed));
    }
  }
  RunningModel(LiveModel live, const std::map<std::string, at::Tensor>& weights)
      : live_(std::move(live)) {
    for (std::size_t i = 0; i < live_.parameters.size(); ++i) {
      set(i, weights.at(live_.graph.parameters[i].name));
    }
  }

  const ModelGraph& graph() const { return live_.graph; }
  at::Tensor& parameter(std::size_t i) { return *live_.parameters[i]; }
  at::Tensor& parameter(const std::string& name) {
    for (std::size_t i = 0; i < live_.parameters.size(); ++i) {
      if (live_.graph.parameters[i].name == name) {
        return parameter(i);
      }
    }
    throw std::out_of_range(name);
  }

  // The sum of the token losses.
  at::Tensor loss(const std::map<std::string, at::Tensor>& inputs) const {
    Tensors values(live_.graph.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (live_.graph.values[i].is_input()) {
        values[i] = inputs.at(live_.graph.values[i].name);
      }
    }
    for (std::size_t i = 0; i < live_.regions.size(); ++i) {
      const Region& region = live_.graph.regions[i];
      Tensors arguments;
      for (const ValueId id : region.inputs) {
        arguments.push_back(values[index(id)]);
      }
      const Tensors results = live_.regions[i](arguments);
      for (std::size_t j = 0; j < results.size(); ++j) {
        values[index(region.outputs[j])] = results[j];
      }
    }
    return values[index(live_.graph.loss)];
  }

 private:
  void set(std::size_t i, const at::Tensor& value) {
    const Parameter& parameter = live_.graph.parameters[i];
    *live_.parameters[i] =
        value.to(to_torch(parameter.dtype)).clone().set_requires_grad(!parameter.frozen);
  }

  LiveModel live_;
};

}  // namespace piper
