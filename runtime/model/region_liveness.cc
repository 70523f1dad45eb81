#include "runtime/model/region_liveness.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/base/dtype.h"
#include "runtime/autograd/split_backward.h"
#include "runtime/model/meta_bytes.h"
#include "runtime/model/operation_mode.h"

namespace piper {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;

// Matrices that the CPU's products read as they are.
bool is_row_major(const at::Tensor& matrix) {
  return matrix.stride(-1) == 1 && matrix.stride(-2) >= std::max<std::int64_t>(1, matrix.size(-1));
}
bool is_column_major(const at::Tensor& matrix) {
  return matrix.stride(-2) == 1 && matrix.stride(-1) >= std::max<std::int64_t>(1, matrix.size(-2));
}

bool asks_for_shapes_alone(const std::string& operation) {
  return operation.ends_with("_like") || operation.starts_with("aten::new_");
}

// What the CPU's matrix products take beside their results, and which parameters operations read.
// In the mode attention is the kernel that the CPU runs.
class Operations final : public OperationObserver {
 public:
  Operations(const Tensors& parameters, std::vector<NarrowProduct>& narrow)
      : parameters_(parameters), narrow_(narrow) {}

  // Positions of the parameters that were read since the last call.
  std::vector<std::size_t> take_reads() {
    std::vector<std::size_t> reads(read_.begin(), read_.end());
    read_.clear();
    return reads;
  }

  void before(const c10::OperatorHandle&, c10::ArrayRef<c10::IValue>) override {}
  void after(const c10::OperatorHandle& operation, c10::ArrayRef<c10::IValue> arguments,
             c10::ArrayRef<c10::IValue>) override {
    const std::string& name = operation.operator_name().name;
    if (!asks_for_shapes_alone(name)) {
      for (const c10::IValue& argument : arguments) {
        for_each_tensor(argument, [&](const at::Tensor& tensor) { read(tensor); });
      }
    }
    if (name == "aten::mm" || name == "aten::bmm") {
      product(arguments[0].toTensor(), arguments[1].toTensor());
    } else if (name == "aten::addmm" || name == "aten::baddbmm") {
      product(arguments[1].toTensor(), arguments[2].toTensor());
    }
  }

 private:
  void product(const at::Tensor& a, const at::Tensor& b) {
    // Alive together with the result.
    const at::Tensor copy_of_a = copy(a), copy_of_b = copy(b);
    if (a.scalar_type() == at::kBFloat16) {
      narrow_.push_back(
          {a.size(-2), a.size(-1), b.size(-1), !is_row_major(a) && is_column_major(a)});
    }
  }

  void read(const at::Tensor& tensor) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (tensor.storage().is_alias_of(parameters_[i].storage())) {
        read_.insert(i);
      }
    }
  }

  static at::Tensor copy(const at::Tensor& matrix) {
    const bool as_it_is = is_row_major(matrix) || is_column_major(matrix);
    return at::empty({as_it_is ? 0 : matrix.numel()}, matrix.options());
  }

  const Tensors& parameters_;
  std::vector<NarrowProduct>& narrow_;
  std::set<std::size_t> read_;
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
  Liveness(const RegionFunction& function, const Tensors& arguments, const Tensors& parameters)
      : function_(function),
        arguments_(arguments),
        parameters_(parameters),
        operations_(parameters, found_.products) {}

  RegionLiveness run() {
    const OperationMode mode(operations_);
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
    RegionLiveness::History history;
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

  // As the first half of a backward has them, which also goes through a region whose arguments have
  // no gradient (runtime/tasks/forward.cc): these are leaves then.
  Tensors make_arguments_of_halves() const {
    const auto requires_grad = [](const at::Tensor& tensor) { return tensor.requires_grad(); };
    if (std::any_of(arguments_.begin(), arguments_.end(), requires_grad) ||
        std::none_of(parameters_.begin(), parameters_.end(), requires_grad)) {
      return make_arguments(false);
    }
    Tensors leaves = make_arguments(true);
    for (at::Tensor& leaf : leaves) {
      leaf.set_requires_grad(leaf.is_floating_point());
    }
    return leaves;
  }

  Pass forward(MetaBytes& bytes, const Tensors& arguments) {
    const at::AutoGradMode grad_mode(true);
    Pass pass;
    bytes.take_history();
    const Tensors results = function_(arguments);
    pass.history = bytes.take_history();
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
    function_(arguments);
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
    Tensors arguments = make_arguments_of_halves();
    MetaBytes bytes;
    Pass pass = forward(bytes, arguments);
    const std::int64_t held = pass.results.bytes() + pass.arriving.bytes();
    arguments.clear();
    found_.forward = std::move(pass.history);
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
    const edge_list ends = pass.inputs.empty() ? lookups(pass.roots) : edge_list();
    if (pass.inputs.empty() && ends == pass.roots) {
      later = {pass.roots, pass.gradients};
    } else {
      bytes.take_history();
      backward_input(pass.roots, pass.gradients, pass.inputs, later, ends);
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
    operations_.take_reads();
    backward_weight(later);
    found_.reread_parameters = operations_.take_reads();
    found_.backward_weight = less(bytes.take_history(), held - arrived);
  }

  const RegionFunction& function_;
  const Tensors& arguments_;
  const Tensors& parameters_;
  RegionLiveness found_;
  Operations operations_;
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
  return Liveness(function, arguments, parameters).run();
}

}  // namespace piper
