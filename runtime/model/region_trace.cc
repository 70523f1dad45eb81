#include "runtime/model/region_trace.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "runtime/model/flops.h"
#include "runtime/model/operation_mode.h"
#include "runtime/model/refused.h"

namespace piper {
namespace {

using Storage = const c10::StorageImpl*;

// Memory that may go while its identity is still needed: a weak reference keeps the address from
// being used again.
class TrackedStorages {
 public:
  void add(const at::Tensor& tensor) {
    const auto& storage = tensor.storage();
    if (known_.insert(storage.unsafeGetStorageImpl()).second) {
      storages_.push_back(storage.getWeakStorageImpl());
    }
  }
  bool contains(Storage storage) const { return known_.contains(storage); }

  bool any_alive() const {
    return std::any_of(storages_.begin(), storages_.end(), [](const auto& storage) {
      return !storage.expired() && storage.lock()->nbytes() > 0;
    });
  }

 private:
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
  std::unordered_set<Storage> known_;  // looked up, never walked
};

Storage storage_of(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

class RegionObserver final : public OperationObserver {
 public:
  RegionObserver(const Tensors& arguments, const ParameterStorages& parameters,
                 const std::vector<Parameter>& declared, const Location& where, RegionTrace& trace)
      : parameters_(parameters), declared_(declared), where_(where), trace_(trace) {
    for (const at::Tensor& argument : arguments) {
      arguments_.add(argument);
    }
  }

  void before(const c10::OperatorHandle& operation, c10::ArrayRef<c10::IValue> arguments) override {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const c10::AliasInfo* alias = operation.schema().arguments()[i].alias_info();
      const bool writes = alias != nullptr && alias->isWrite();
      for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
        use(operation.operator_name().name, tensor, writes);
      });
    }
  }

  void after(const c10::OperatorHandle& operation, c10::ArrayRef<c10::IValue> arguments,
             c10::ArrayRef<c10::IValue> results) override {
    for (const c10::IValue& result : results) {
      for_each_tensor(result, [&](const at::Tensor& tensor) {
        if (is_own(tensor)) {
          made_.add(tensor);
        }
      });
    }
    trace_.flops += flops(operation.operator_name().name, arguments, results);
  }

  // `what` and the rule, unless the tensor is the region's own work.
  void check_result(const at::Tensor& tensor, std::size_t number) const {
    const std::string what = "result " + std::to_string(number) + " of the region";
    if (!tensor.defined()) {
      throw Refused(error("model.result", what + " is an undefined tensor", where_));
    }
    if (!made_.contains(storage_of(tensor))) {
      const auto parameter = parameters_.find(storage_of(tensor));
      throw Refused(error(
          "model.aliased_result",
          what +
              (arguments_.contains(storage_of(tensor)) ? " shares memory with one of its inputs"
               : parameter != parameters_.end()
                   ? " shares memory with parameter '" + name(parameter->second) + "'"
                   : " was not computed by it") +
              "; expected a tensor of its own, such as .clone() gives",
          where_));
    }
  }

  const TrackedStorages& made() const { return made_; }
  const TrackedStorages& arguments() const { return arguments_; }

 private:
  const std::string& name(ParameterId id) const { return declared_[index(id)].name; }

  bool is_own(const at::Tensor& tensor) const {
    return !arguments_.contains(storage_of(tensor)) && !parameters_.contains(storage_of(tensor));
  }

  void use(const std::string& operation, const at::Tensor& tensor, bool writes) {
    // The 2 of `x * 2` is a tensor that no operation made.
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number() || made_.contains(storage_of(tensor))) {
      return;
    }
    const auto parameter = parameters_.find(storage_of(tensor));
    if (writes) {
      throw Refused(error(
          "model.in_place",
          operation + " writes to " +
              (parameter != parameters_.end() ? "parameter '" + name(parameter->second) + "'"
                                              : "an input of the region, " + describe(tensor)) +
              "; expected a tensor that this region made",
          where_));
    }
    if (parameter != parameters_.end()) {
      auto& used = trace_.parameters;
      if (std::find(used.begin(), used.end(), parameter->second) == used.end()) {
        used.push_back(parameter->second);
      }
    } else if (!arguments_.contains(storage_of(tensor))) {
      throw Refused(
          error("model.foreign_tensor",
                operation + " uses a tensor that the region was not given, " + describe(tensor) +
                    "; expected an input of the region, a parameter, or a tensor made in it",
                where_)
              .note("capture a ParameterHandle, not a Tensor, and pass results of other "
                    "regions as inputs"));
    }
  }

  const ParameterStorages& parameters_;
  const std::vector<Parameter>& declared_;
  const Location& where_;
  RegionTrace& trace_;
  TrackedStorages arguments_, made_;
};

Value describe_value(const at::Tensor& tensor, std::size_t number, const Location& where) {
  Value value;
  switch (tensor.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kBFloat16:
    case at::kLong:
    case at::kBool:
      value.dtype = from_torch(tensor.scalar_type());
      break;
    default:
      throw Refused(
          error("model.result_dtype",
                "result " + std::to_string(number) +
                    " of the region: expected float32, float64, bfloat16, int64 or bool, got " +
                    c10::toString(tensor.scalar_type()),
                where));
  }
  for (const std::int64_t size : tensor.sizes()) {
    value.shape.push_back({0, size});
  }
  return value;
}

}  // namespace

RegionTrace trace_region(const RegionFunction& function, Tensors arguments,
                         const ParameterStorages& parameters,
                         const std::vector<Parameter>& declared, const Location& where) {
  RegionTrace trace;
  RegionObserver observer(arguments, parameters, declared, where, trace);
  Tensors results;
  {
    const OperationMode mode(observer);
    const at::AutoGradMode gradients(true);
    results = function(arguments);
  }
  if (results.empty()) {
    throw Refused(error("model.result", "the region has no result; expected at least one", where));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    observer.check_result(results[i], i);
    for (std::size_t j = 0; j < i; ++j) {
      if (storage_of(results[i]) == storage_of(results[j])) {
        throw Refused(error("model.aliased_result",
                            "results " + std::to_string(j) + " and " + std::to_string(i) +
                                " of the region share memory; expected tensors of their own, such "
                                "as .clone() gives",
                            where));
      }
    }
    trace.results.push_back(describe_value(results[i], i, where));
    trace.has_gradient.push_back(results[i].requires_grad());
  }

  // Nothing but its graph may hold what it made or was given.
  arguments.clear();
  results.clear();
  if (observer.made().any_alive() || observer.arguments().any_alive()) {
    throw Refused(error("model.region_state",
                        "the region keeps a tensor after it has run; expected a function without "
                        "state, which several micro-batches can run in turn",
                        where));
  }
  return trace;
}

struct OutsideRegions::Observer final : OperationObserver {
  explicit Observer(const Location& last) : last_region(last), mode(*this) {}

  void before(const c10::OperatorHandle& operation, c10::ArrayRef<c10::IValue> arguments) override {
    std::string on;
    for (const c10::IValue& argument : arguments) {
      for_each_tensor(argument, [&](const at::Tensor& tensor) {
        on += (on.empty() ? " on " : ", ") + describe(tensor);
      });
    }
    Diagnostic refused = error("model.outside_region",
                               "operation outside every region: " + operation.operator_name().name +
                                   on + "; expected it inside a function given to region()",
                               last_region);
    if (last_region.known()) {
      refused.note("it comes after the region made here", last_region);
    }
    throw Refused(std::move(refused));
  }
  void after(const c10::OperatorHandle&, c10::ArrayRef<c10::IValue>,
             c10::ArrayRef<c10::IValue>) override {}

  const Location& last_region;
  OperationMode mode;
};

OutsideRegions::OutsideRegions(const Location& last)
    : observer_(std::make_unique<Observer>(last)) {}
OutsideRegions::~OutsideRegions() = default;

}  // namespace piper
