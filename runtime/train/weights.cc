#include "runtime/train/weights.h"

#include <functional>
#include <map>

#include "runtime/checkpoint/hf.h"
#include "runtime/checkpoint/safetensors.h"

namespace piper {
namespace {

// What `read` gives for each parameter on the first rank that has it.
std::map<std::string, at::Tensor> gather(
    const Job& job, const Engine& engine,
    const std::function<at::Tensor(std::uint32_t rank, ParameterId id)>& read) {
  std::map<std::string, at::Tensor> tensors;
  for (std::uint32_t i = 0; i < job.model.parameters.size(); ++i) {
    for (std::uint32_t rank = 0; rank < engine.world(); ++rank) {
      if (at::Tensor tensor = read(rank, static_cast<ParameterId>(i)); tensor.defined()) {
        tensors.emplace(job.model.parameters[i].name, std::move(tensor));
        break;
      }
    }
  }
  return tensors;
}

}  // namespace

Status load_initial_weights(const Job& job, Engine& engine, Reference* reference) {
  const std::string path = initial_weights_path(job.config);
  if (path.empty()) {
    return {};
  }
  PIPER_ASSIGN(const auto tensors, load_weights(path, job.model));
  for (std::uint32_t i = 0; i < job.model.parameters.size(); ++i) {
    const at::Tensor& value = tensors.at(job.model.parameters[i].name);
    engine.set_parameter(static_cast<ParameterId>(i), value);
    if (reference != nullptr) {
      reference->set(static_cast<ParameterId>(i), value);
    }
  }
  return {};
}

Status save_last_weights(const Job& job, const Engine& engine, const ModelFiles& files,
                         const std::string& folder) {
  return save_hf(folder, job.config, job.model, files,
                 gather(job, engine, [&](std::uint32_t rank, ParameterId id) {
                   return engine.master(rank, id);
                 }));
}

Status save_gradients(const Job& job, const Engine& engine, const std::string& file) {
  return save_weights(file, gather(job, engine, [&](std::uint32_t rank, ParameterId id) {
                        return job.model.parameter(id).frozen ? at::Tensor()
                                                              : engine.gradient(rank, id);
                      }));
}

}  // namespace piper
