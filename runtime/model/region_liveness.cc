#include "runtime/model/region_liveness.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "core/base/dtype.h"
#include "runtime/model/meta_bytes.h"
#include "runtime/model/operation_mode.h"
#include "runtime/tasks/split_backward.h"

namespace piper {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;

// The mode alone: attention is then the kernel that the CPU runs.
class Nothing final : public OperationObserver {
  void before(const c10::OperatorHandle&, c10::ArrayRef<c10::IValue>) override {}
  void after(const c10::OperatorHandle&, c10::ArrayRef<c10::IValue>,
             c10::ArrayRef<c10::IValue>) override {}
};

// Memory that is held, so that it does not count as it goes, and whether anybody else holds it.
class Held {
 public:
  void add(const at::Tensor& tensor) { storages_.push_back(tensor.storage()); }

  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const c10::Storage& storage : storages_) {
      sum += static_cast<std::int64_t>(storage.nbytes());
    }
    return sum;
  }
  std::int64_t bytes_of(const std::vector<std::size_t>& positions) const {
    std::int64_t sum = 0;
    for (const std::size_t position : positions) {
      sum += static_cast<std::int64_t>(storages_[position].nbytes());
    }
    return sum;
  }
  std::vector<std::size_t> in_use() const {
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i].use_count() > 1) {
        positions.push_back(i);
      }
    }
    return positions;
  }

 private:
  std::vector<c10::Storage> storages_;
};

class Liveness {
 public:
  Liveness(const RegionFunction& function, const Tensors& arguments)
      : function_(function), arguments_(arguments) {}

  RegionLiveness run() {
    evaluate();
    try {
      split_backward();
      whole_backward();
    } catch (const c10::Error&) {
      found_.complete = false;
    }
    return std::move(found_);
  }

 private:
  // What a forward pass leaves: its graph, and memory that others hold.
  struct Pass {
    edge_list roots, inputs;             // of results and arguments that have a gradient
    Tensors gradients;                   // of the roots
    std::vector<std::size_t> positions;  // of the roots among the results
    Held arguments, results, arriving;   // the last one of `gradients`
  };

  // With leaves, as a chunk of the runtime has them. Without, the graph does not hold on to
  // arguments that it does not need.
  Tensors make_arguments(bool leaves) const {
    const at::AutoGradMode gradients(true);
    Tensors fresh;
    for (const at::Tensor& argument : arguments_) {
      const at::Tensor leaf =
          at::empty_like(argument.detach()).set_requires_grad(argument.requires_grad());
      fresh.push_back(leaves || !argument.requires_grad() ? leaf : leaf.clone());
    }
    return fresh;
  }

  Tensors call(const Tensors& arguments) const {
    Nothing nothing;
    const OperationMode mode(nothing);
    return function_(arguments);
  }

  Pass forward(MetaBytes& bytes, const Tensors& arguments) {
    const at::AutoGradMode grad_mode(true);
    Pass pass;
    bytes.take_history();
    const Tensors results = call(arguments);
    found_.forward = bytes.take_history();
    for (const at::Tensor& argument : arguments) {
      pass.arguments.add(argument);
      if (argument.requires_grad()) {
        pass.inputs.push_back(torch::autograd::impl::gradient_edge(argument));
      }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      pass.results.add(results[i]);
      if (results[i].requires_grad()) {
        pass.roots.push_back(torch::autograd::impl::gradient_edge(results[i]));
        pass.positions.push_back(i);
        pass.gradients.push_back(at::empty_like(results[i].detach()));
        pass.arriving.add(pass.gradients.back());
      }
    }
    return pass;
  }

  static RegionLiveness::History less(RegionLiveness::History history, std::int64_t held) {
    for (std::int64_t& live : history) {
      live -= held;
    }
    return history;
  }

  void evaluate() {
    const Tensors arguments = make_arguments(true);
    MetaBytes bytes;
    const at::NoGradGuard no_graph;
    call(arguments);
    found_.evaluate = bytes.take_history();
  }

  void whole_backward() {
    const Tensors arguments = make_arguments(true);
    MetaBytes bytes;
    const Pass pass = forward(bytes, arguments);
    if (pass.roots.empty()) {
      return;
    }
    bytes.take_history();
    torch::autograd::Engine::get_default_engine().execute(
        pass.roots, pass.gradients, /*keep_graph=*/false, /*create_graph=*/false,
        /*accumulate_grad=*/true);
    found_.backward = less(bytes.take_history(), pass.results.bytes() + pass.arriving.bytes());
  }

  void split_backward() {
    Tensors arguments = make_arguments(false);
    MetaBytes bytes;
    Pass pass = forward(bytes, arguments);
    const std::int64_t held = pass.results.bytes() + pass.arriving.bytes();
    arguments.clear();
    found_.saved_inputs = pass.arguments.in_use();
    found_.saved_results = pass.results.in_use();
    found_.kept_bytes = bytes.live() - pass.arriving.bytes();
    found_.saved_bytes = bytes.live() - held + pass.arguments.bytes_of(found_.saved_inputs) +
                         pass.results.bytes_of(found_.saved_results);
    found_.pending_bytes = found_.saved_bytes + pass.arriving.bytes();
    if (pass.roots.empty()) {
      return;
    }

    WeightGradients later;
    if (pass.inputs.empty()) {
      later = {pass.roots, pass.gradients};
    } else {
      bytes.take_history();
      backward_input(pass.roots, pass.gradients, pass.inputs, later);
      found_.backward_input = less(bytes.take_history(), held);
    }
    pass.roots.clear();
    pass.inputs.clear();
    pass.gradients.clear();
    found_.pending_inputs = pass.arguments.in_use();
    found_.pending_results = pass.results.in_use();
    for (const std::size_t root : pass.arriving.in_use()) {
      found_.pending_gradients.push_back(pass.positions[root]);
    }
    const std::int64_t arrived = pass.arriving.bytes_of(pass.arriving.in_use());
    found_.pending_bytes = bytes.live() - held + arrived +
                           pass.arguments.bytes_of(found_.pending_inputs) +
                           pass.results.bytes_of(found_.pending_results);
    bytes.take_history();
    backward_weight(later);
    found_.backward_weight = less(bytes.take_history(), held - arrived);
  }

  const RegionFunction& function_;
  const Tensors& arguments_;
  RegionLiveness found_;
};

}  // namespace

RegionLiveness measure_liveness(const RegionFunction& function, const Tensors& arguments,
                                const Tensors& parameters) {
  // Parameters add what they get to gradients of their own. To a wider one the CPU adds a copy.
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.requires_grad()) {
      continue;
    }
    const auto wide = at::TensorOptions(at::kMeta).dtype(
        to_torch(gradient_dtype(from_torch(parameter.scalar_type()))));
    parameter.mutable_grad() = at::empty(parameter.sizes(), wide);
    if (wide.dtype() != parameter.dtype()) {
      parameter.register_hook([wide](const at::Tensor& gradient) {
        const at::Tensor copy = at::empty(gradient.sizes(), wide);
        return gradient;
      });
    }
  }
  return Liveness(function, arguments).run();
}

}  // namespace piper
