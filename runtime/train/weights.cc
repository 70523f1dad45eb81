#include "runtime/train/weights.h"

#include <map>

#include "runtime/checkpoint/hf.h"
#include "runtime/checkpoint/safetensors.h"

namespace piper {
namespace {

// Each parameter, or what else is kept of it, from the first rank that has it.
std::map<std::string, at::Tensor> gather(const Job& job, const Engine& engine, Kept what) {
  std::map<std::string, at::Tensor> tensors;
  for (std::uint32_t i = 0; i < job.model.parameters.size(); ++i) {
    const ParameterId id{i};
    const std::vector<std::uint32_t> homes = engine.homes(id);
    at::Tensor tensor = homes.empty() ? at::Tensor() : engine.gather(what, id, homes.front());
    if (tensor.defined()) {
      tensors.emplace(job.model.parameters[i].name, std::move(tensor));
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
  return save_hf(folder, job.config, job.model, files, gather(job, engine, Kept::master));
}

Status save_gradients(const Job& job, const Engine& engine, const std::string& file) {
  return save_weights(file, gather(job, engine, Kept::gradient));
}

}  // namespace piper
