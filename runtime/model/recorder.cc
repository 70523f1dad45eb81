#include "runtime/model/recorder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/model/operation_mode.h"
#include "runtime/model/refused.h"
#include "runtime/model/run_on_zeros.h"

namespace piper {
namespace {

// As the compiler was given it; an absolute path would differ from machine to machine, so its last
// part alone.
Location location(const std::source_location& where) {
  std::string_view file = where.file_name();
  if (file.starts_with('/')) {
    file.remove_prefix(file.rfind('/') + 1);
  }
  return {std::string(file), where.line(), where.column()};
}

at::Tensor meta_tensor(const std::vector<std::int64_t>& shape, at::ScalarType dtype) {
  return at::empty(shape, at::TensorOptions(at::kMeta).dtype(dtype));
}

// The typed keys of [model], which a model of a user's own may read too.
std::optional<double> typed_key(const ModelConfig& model, const std::string& name) {
  const std::pair<const char*, double> keys[] = {
      {"layers", static_cast<double>(model.layers)},
      {"dim", static_cast<double>(model.dim)},
      {"heads", static_cast<double>(model.heads)},
      {"kv_heads", static_cast<double>(model.kv_heads)},
      {"head_dim", static_cast<double>(model.head_dim)},
      {"ffn", static_cast<double>(model.ffn)},
      {"vocab", static_cast<double>(model.vocab)},
      {"rope_theta", model.rope_theta},
      {"norm_eps", model.norm_eps},
      {"dropout", model.dropout},
  };
  for (const auto& [known, value] : keys) {
    if (known == name && value != 0) {
      return value;
    }
  }
  return std::nullopt;
}

RegionFunction with_contiguous_results(RegionFunction function) {
  return [function = std::move(function)](const Tensors& inputs) {
    Tensors results = function(inputs);
    for (at::Tensor& result : results) {
      if (result.defined() && !result.is_contiguous()) {
        result = result.contiguous();
      }
    }
    return results;
  };
}

}  // namespace

Recorder::Recorder(const Config& config, std::int64_t rows, bool measure)
    : config_(config), rows_(rows), measure_(measure), freeze_used_(config.model.freeze.size()) {
  model_.graph.name = config.model.name;
}

void Recorder::run(ModelFunction function) {
  {
    const OutsideRegions outside(last_region_);
    function(*this);
  }
  check_complete();
}

at::Tensor Recorder::input(const std::string& name, const std::vector<std::int64_t>& shape,
                           at::ScalarType dtype) {
  for (const Value& value : model_.graph.values) {
    if (value.is_input() && value.name == name) {
      throw Refused(error("model.duplicate_input", "input '" + name + "' is declared twice"));
    }
  }
  Value value;
  value.name = name;
  value.dtype = from_torch(dtype);
  value.shape = {{1, 0}};
  for (const std::int64_t size : shape) {
    value.shape.push_back({0, size});
  }
  const ValueId id = add_value(std::move(value));
  if (name == "labels") {
    model_.graph.labels = id;
  }
  return handle(id);
}

ParameterHandle Recorder::parameter(const std::string& name, const std::vector<std::int64_t>& shape,
                                    Init init, std::source_location where) {
  const Unobserved unobserved;
  for (const Parameter& other : model_.graph.parameters) {
    if (other.name == name) {
      throw Refused(error("model.duplicate_parameter", "parameter '" + name + "' is declared twice",
                          location(where))
                        .note("first declared here", other.where));
    }
  }
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size <= 0; })) {
    throw Refused(error(
        "model.parameter_shape",
        "parameter '" + name + "': expected sizes above 0, got " + c10::str(at::IntArrayRef(shape)),
        location(where)));
  }
  model_.graph.parameters.push_back(
      {name, from_torch(dtype()), shape, is_frozen(name), location(where)});
  model_.inits.push_back(init);
  auto slot = std::make_shared<at::Tensor>(meta_tensor(shape, dtype()));
  model_.parameters.push_back(slot);
  inside_.emplace_back();
  renew(static_cast<ParameterId>(inside_.size() - 1));
  return ParameterHandle(std::move(slot));
}

Build::Scope Recorder::annotate(const std::string& tag, std::int64_t index) {
  if (index < -1) {
    throw Refused(
        error("model.tag_index",
              "tag '" + tag + "': expected an index of at least 0, got " + std::to_string(index)));
  }
  const TagId name = model_.graph.intern_tag(tag);
  for (const Tag& outer : scopes_) {
    if (outer.name == name) {
      throw Refused(
          error("model.nested_tag", "scope '" + tag + "' is inside a scope of that name"));
    }
  }
  const std::int64_t count = scope_counts_[tag]++;
  scopes_.push_back({name, static_cast<std::uint32_t>(index < 0 ? count : index)});
  return Scope([this] { scopes_.pop_back(); });
}

Tensors Recorder::region(const Tensors& inputs, RegionFunction function,
                         std::source_location where) {
  const Unobserved unobserved;
  const auto id = static_cast<RegionId>(model_.graph.regions.size());
  Region region;
  region.tags = scopes_;
  region.where = location(where);
  if (std::exchange(in_region_, true)) {
    throw Refused(error("model.nested_region", "a region inside a region", region.where)
                      .note("the outer one is here", last_region_));
  }
  Tensors arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto value = values_.find(inputs[i].unsafeGetTensorImpl());
    if (value == values_.end()) {
      throw Refused(error("model.region_input",
                          "input " + std::to_string(i) +
                              " of the region: expected an input of the model or a result of a "
                              "region, got " +
                              (inputs[i].defined() ? describe(inputs[i]) : "an undefined tensor"),
                          region.where));
    }
    region.inputs.push_back(value->second);
    arguments.push_back(argument(value->second));
  }

  function = with_contiguous_results(std::move(function));
  swap_parameters();
  last_region_ = region.where;
  try {
    traces_.push_back(trace_region(function, std::move(arguments), storages_,
                                   model_.graph.parameters, region.where));
    if (measure_) {
      Tensors parameters;
      for (const ParameterId used : traces_.back().parameters) {
        parameters.push_back(*model_.parameters[index(used)]);
      }
      arguments.clear();
      for (const ValueId input : region.inputs) {
        arguments.push_back(argument(input));
      }
      liveness_.push_back(measure_liveness(function, arguments, parameters));
    }
  } catch (const TooManyZeros& failure) {
    throw Refused(error("model.meta_kernel", failure.what(), region.where));
  } catch (const c10::Error& failure) {
    throw Refused(
        error("model.region_failed", first_line(failure.what_without_backtrace()), region.where));
  }
  swap_parameters();
  for (const ParameterId used : traces_.back().parameters) {
    renew(used);
  }
  in_region_ = false;

  region.parameters = traces_.back().parameters;
  Tensors results;
  for (std::size_t i = 0; i < traces_.back().results.size(); ++i) {
    Value value = traces_.back().results[i];
    value.producer = id;
    region.outputs.push_back(add_value(std::move(value)));
    has_gradient_[index(region.outputs.back())] = traces_.back().has_gradient[i];
    results.push_back(handle(region.outputs.back()));
  }
  model_.graph.regions.push_back(std::move(region));
  model_.regions.push_back(std::move(function));
  return results;
}

void Recorder::loss(const at::Tensor& sum) {
  const auto value = values_.find(sum.unsafeGetTensorImpl());
  if (value == values_.end() || model_.graph.value(value->second).is_input()) {
    throw Refused(error("model.loss", "loss(): expected a result of a region", last_region_));
  }
  const Value& found = model_.graph.value(value->second);
  if (!found.shape.empty() || !is_floating(found.dtype)) {
    throw Refused(
        error("model.loss",
              "loss(): expected a floating-point scalar, the sum of the token losses, got " +
                  describe(sum),
              last_region_));
  }
  if (valid(model_.graph.loss)) {
    throw Refused(error("model.loss", "loss() is called twice; expected one loss", last_region_));
  }
  model_.graph.loss = value->second;
}

std::int64_t Recorder::integer(const std::string& name, std::int64_t fallback) {
  if (const OptionValue* option = key(name)) {
    if (const auto* value = std::get_if<std::int64_t>(&option->value)) {
      return *value;
    }
    throw Refused(
        error("model.key_type", "[model] " + name + ": expected an integer", option->where));
  }
  const std::optional<double> typed = typed_key(config_.model, name);
  return typed ? static_cast<std::int64_t>(*typed) : fallback;
}

double Recorder::number(const std::string& name, double fallback) {
  if (const OptionValue* option = key(name)) {
    if (const auto* value = std::get_if<double>(&option->value)) {
      return *value;
    }
    if (const auto* value = std::get_if<std::int64_t>(&option->value)) {
      return static_cast<double>(*value);
    }
    throw Refused(
        error("model.key_type", "[model] " + name + ": expected a number", option->where));
  }
  return typed_key(config_.model, name).value_or(fallback);
}

const OptionValue* Recorder::key(const std::string& name) {
  asked_keys_.insert(name);
  const auto found = config_.model.keys.find(name);
  return found == config_.model.keys.end() ? nullptr : &found->second;
}

void Recorder::renew(ParameterId id) {
  at::Tensor& tensor = inside_[index(id)];
  if (tensor.defined()) {
    storages_.erase(tensor.storage().unsafeGetStorageImpl());
  }
  const Parameter& parameter = model_.graph.parameter(id);
  tensor = meta_tensor(parameter.shape, to_torch(parameter.dtype))
               .set_requires_grad(is_floating(parameter.dtype) && !parameter.frozen);
  storages_.emplace(tensor.storage().unsafeGetStorageImpl(), id);
}

void Recorder::swap_parameters() {
  for (std::size_t i = 0; i < inside_.size(); ++i) {
    std::swap(*model_.parameters[i], inside_[i]);
  }
}

ValueId Recorder::add_value(Value value) {
  const Unobserved unobserved;
  const auto id = static_cast<ValueId>(model_.graph.values.size());
  std::vector<std::int64_t> shape;
  for (const Affine& size : value.shape) {
    shape.push_back(size.at(rows_));
  }
  handles_.push_back(meta_tensor(shape, to_torch(value.dtype)));
  values_.emplace(handles_.back().unsafeGetTensorImpl(), id);
  model_.graph.values.push_back(std::move(value));
  has_gradient_.push_back(false);
  return id;
}

at::Tensor Recorder::handle(ValueId id) {
  return handles_[index(id)];
}

// A tensor of its own for the region that reads the value. With a gradient it is no leaf, because
// the graph keeps leaves alive, needed or not.
at::Tensor Recorder::argument(ValueId id) const {
  const at::AutoGradMode gradients(true);
  const at::Tensor& value = handles_[index(id)];
  const at::Tensor fresh = meta_tensor(value.sizes().vec(), value.scalar_type());
  return has_gradient_[index(id)] ? fresh.set_requires_grad(true).clone() : fresh;
}

bool Recorder::is_frozen(const std::string& parameter) {
  bool frozen = false;
  for (std::size_t i = 0; i < freeze_used_.size(); ++i) {
    if (glob_matches(config_.model.freeze[i], parameter)) {
      freeze_used_[i] = true;
      frozen = true;
    }
  }
  return frozen;
}

void Recorder::check_complete() const {
  Diagnostics mistakes;
  if (!valid(model_.graph.loss)) {
    mistakes.push_back(
        error("model.loss", "the model never calls loss(); expected it once", last_region_));
  }
  if (!valid(model_.graph.labels) ||
      model_.graph.value(model_.graph.labels).dtype != DType::int64) {
    mistakes.push_back(
        error("model.labels",
              "the model has no int64 input 'labels', whose entries other than -100 are counted",
              last_region_));
  }
  std::vector<std::string> names;
  for (const Parameter& parameter : model_.graph.parameters) {
    names.push_back(parameter.name);
  }
  for (std::size_t i = 0; i < freeze_used_.size(); ++i) {
    if (!freeze_used_[i]) {
      const std::string& glob = config_.model.freeze[i];
      const std::string near = nearest(glob, names);
      mistakes.push_back(error("model.freeze",
                               "no parameter matches '" + glob + "'" +
                                   (near.empty() ? "" : " (did you mean '" + near + "'?)"),
                               config_.where("model.freeze")));
    }
  }
  for (const auto& [name, option] : config_.model.keys) {
    if (!asked_keys_.contains(name)) {
      mistakes.push_back(error("model.unknown_key",
                               "unknown key '" + name + "' in [model]; model '" +
                                   config_.model.name + "' has no such key" +
                                   suggest(name, {asked_keys_.begin(), asked_keys_.end()}),
                               option.where));
    }
  }
  if (!mistakes.empty()) {
    throw Refused(std::move(mistakes));
  }
}

}  // namespace piper
