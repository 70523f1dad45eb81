#include "core/ir/model_graph_verify.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace piper {
namespace {

using Kind = ItemPlaces::Kind;

constexpr std::size_t kMostErrors = 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 31;  // of one dimension
constexpr std::int64_t kMostBytes = std::int64_t{1}
                                    << 50;  // of one tensor (a row of it, where it depends on rows)

class ModelPlaces : public ItemPlaces {
 public:
  explicit ModelPlaces(const ModelGraph& model) : model_(model) {}
  Location where(Kind kind, std::uint32_t id) const override {
    switch (kind) {
      case Kind::parameter:
        return model_.parameters[id].where;
      case Kind::region:
        return model_.regions[id].where;
      case Kind::value:
        return {};
      case Kind::graph:
      case Kind::tag_name:
      case Kind::dimension:
        break;
    }
    return {};
  }

 private:
  const ModelGraph& model_;
};

// True if `bytes` * `size` stays in bounds; then `bytes` is the product.
bool grow(std::int64_t& bytes, std::int64_t size) {
  if (size != 0 && bytes > kMostBytes / size) {
    return false;
  }
  bytes *= size;
  return true;
}

class ModelVerifier {
 public:
  ModelVerifier(const ModelGraph& model, const ItemPlaces& places)
      : model_(model), places_(places) {}

  Status run() {
    tag_names();
    dimensions();
    parameters();
    for (std::uint32_t id = 0; id < model_.values.size(); ++id) {
      value(id);
    }
    produced_.assign(model_.values.size(), false);
    for (std::uint32_t id = 0; id < model_.values.size(); ++id) {
      produced_[id] = model_.values[id].is_input();
    }
    for (std::uint32_t id = 0; id < model_.regions.size(); ++id) {
      region(id);
    }
    for (std::uint32_t id = 0; id < model_.values.size(); ++id) {
      if (!produced_[id] && index(model_.values[id].producer) < model_.regions.size()) {
        add("ir.producer",
            "value " + std::to_string(id) + " is not among the outputs of region " +
                std::to_string(index(model_.values[id].producer)) + ", its producer",
            Kind::value, id);
      }
    }
    loss();
    labels();
    if (errors_.empty()) {
      return {};
    }
    return fail(std::move(errors_));
  }

 private:
  void add(std::string code, std::string message, Kind kind, std::uint32_t id) {
    if (errors_.size() < kMostErrors) {
      errors_.push_back(error(std::move(code), std::move(message), places_.where(kind, id)));
    }
  }

  // Letters, digits and '_', and no digit first.
  static bool is_plain(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }) && (name[0] < '0' || name[0] > '9');
  }

  void dimensions() {
    std::set<std::string_view> seen;
    for (std::uint32_t id = 0; id < model_.dimensions.size(); ++id) {
      const RunTimeDimension& dimension = model_.dimensions[id];
      const std::string name = "run-time dimension '" + dimension.name + "'";
      if (!is_plain(dimension.name) || dimension.name == "r") {
        add("ir.name",
            "expected letters, digits and '_' in the name of a run-time dimension, and another "
            "name than the rows' r, got '" +
                dimension.name + "'",
            Kind::dimension, id);
      } else if (!seen.insert(dimension.name).second) {
        add("ir.duplicate_name", "two run-time dimensions are called '" + dimension.name + "'",
            Kind::dimension, id);
      }
      if (dimension.maximum.per_row < 0 || dimension.maximum.fixed < 0) {
        add("ir.shape", name + ": expected a maximum of at least 0, got a negative one",
            Kind::dimension, id);
      }
    }
  }

  void tag_names() {
    std::set<std::string_view> seen;
    for (std::uint32_t id = 0; id < model_.tag_names.size(); ++id) {
      const std::string& name = model_.tag_names[id];
      if (!is_plain(name)) {
        add("ir.name", "expected letters, digits and '_' in the name of a tag, got '" + name + "'",
            Kind::tag_name, id);
      } else if (!seen.insert(name).second) {
        add("ir.duplicate_name", "two tags are called '" + name + "'", Kind::tag_name, id);
      }
    }
  }

  void parameters() {
    std::map<std::string_view, std::uint32_t> seen;
    for (std::uint32_t id = 0; id < model_.parameters.size(); ++id) {
      const Parameter& parameter = model_.parameters[id];
      if (parameter.name.empty()) {
        add("ir.name", "parameter " + std::to_string(id) + " has no name", Kind::parameter, id);
        continue;
      }
      const std::string name = "parameter '" + parameter.name + "'";
      if (const auto [first, is_new] = seen.emplace(parameter.name, id); !is_new) {
        add("ir.duplicate_name",
            name + " is declared twice: as parameter " + std::to_string(first->second) +
                " and as parameter " + std::to_string(id),
            Kind::parameter, id);
      }
      if (!is_floating(parameter.dtype)) {
        add("ir.dtype",
            name + ": expected a floating-point dtype, got " +
                std::string(to_string(parameter.dtype)),
            Kind::parameter, id);
      }
      std::int64_t bytes = size_of(DType::float64);
      for (const std::int64_t size : parameter.shape) {
        if (size < 0) {
          add("ir.shape", name + ": expected dimensions of at least 0, got " + std::to_string(size),
              Kind::parameter, id);
          break;
        }
        if (!grow(bytes, size)) {
          add("ir.size", name + " is larger than 1 PiB", Kind::parameter, id);
          break;
        }
      }
    }
  }

  void value(std::uint32_t id) {
    const Value& value = model_.values[id];
    const std::string name =
        "value " + std::to_string(id) + (value.name.empty() ? "" : " ('" + value.name + "')");
    if (value.is_input()) {
      if (value.name.empty()) {
        add("ir.name", "value " + std::to_string(id) + " is an input of the model but has no name",
            Kind::value, id);
      } else if (!input_names_.insert(value.name).second) {
        add("ir.duplicate_name", "two inputs of the model are called '" + value.name + "'",
            Kind::value, id);
      }
      if (value.shape.empty() || value.shape[0] != Affine{1, 0}) {
        add("ir.shape",
            name + ": expected the rows as the first dimension of an input of the model",
            Kind::value, id);
      }
    } else if (index(value.producer) >= model_.regions.size()) {
      add("ir.range",
          name + ": expected a producer below " + std::to_string(model_.regions.size()) +
              " (the number of regions), got " + std::to_string(index(value.producer)),
          Kind::value, id);
    }
    run_time(value, name, id);
    std::int64_t fixed = size_of(value.dtype);
    std::int64_t per_row = fixed;
    std::uint32_t row_dimensions = 0;
    for (const Affine& size : value.shape) {
      if (size.per_row < 0 || size.fixed < 0) {
        add("ir.shape", name + ": expected dimensions of at least 0, got a negative one",
            Kind::value, id);
        return;
      }
      if (size.per_row > 0 && ++row_dimensions > 1) {
        add("ir.shape", name + ": expected at most one dimension that depends on the rows, got two",
            Kind::value, id);
        return;
      }
      if (!grow(fixed, std::max<std::int64_t>(size.fixed, 1)) ||
          !grow(per_row, std::max<std::int64_t>({size.fixed, size.per_row, 1}))) {
        add("ir.size", name + " is larger than 1 PiB a row", Kind::value, id);
        return;
      }
    }
  }

  // Where a dimension is known at run time only, the shape has its maximum.
  void run_time(const Value& value, const std::string& name, std::uint32_t id) {
    if (value.run_time.empty()) {
      return;
    }
    if (value.run_time.size() != value.shape.size()) {
      add("ir.shape",
          name + ": expected run-time dimensions for " + std::to_string(value.shape.size()) +
              " dimensions, got " + std::to_string(value.run_time.size()),
          Kind::value, id);
      return;
    }
    for (std::size_t i = 0; i < value.shape.size(); ++i) {
      const DimensionId dimension = value.run_time[i];
      if (!valid(dimension)) {
        continue;
      }
      if (index(dimension) >= model_.dimensions.size()) {
        add("ir.range", name + ": no run-time dimension " + std::to_string(index(dimension)),
            Kind::value, id);
      } else if (value.is_input()) {
        add("ir.shape",
            name + ": expected known dimensions of an input of the model, got '" +
                model_.dimensions[index(dimension)].name + "', which is known at run time only",
            Kind::value, id);
      } else if (value.shape[i] != model_.dimensions[index(dimension)].maximum) {
        add("ir.shape",
            name + ": expected the maximum of '" + model_.dimensions[index(dimension)].name +
                "' as its size",
            Kind::value, id);
      }
    }
  }

  void region(std::uint32_t id) {
    const Region& region = model_.regions[id];
    const std::string name = "region " + std::to_string(id);
    std::set<TagId> tags;
    for (const Tag& tag : region.tags) {
      if (index(tag.name) >= model_.tag_names.size()) {
        add("ir.range", name + ": no tag " + std::to_string(index(tag.name)), Kind::region, id);
      } else if (!tags.insert(tag.name).second) {
        add("ir.tag", name + " has tag " + model_.tag_names[index(tag.name)] + " twice",
            Kind::region, id);
      }
    }
    std::set<ParameterId> parameters;
    for (const ParameterId parameter : region.parameters) {
      if (index(parameter) >= model_.parameters.size()) {
        add("ir.range", name + ": no parameter " + std::to_string(index(parameter)), Kind::region,
            id);
      } else if (!parameters.insert(parameter).second) {
        add("ir.duplicate",
            name + " lists parameter '" + model_.parameter(parameter).name + "' twice",
            Kind::region, id);
      }
    }
    for (const ValueId input : region.inputs) {
      if (index(input) >= model_.values.size()) {
        add("ir.range", name + ": no value " + std::to_string(index(input)), Kind::region, id);
      } else if (!produced_[index(input)]) {
        add("ir.order",
            name + " reads value " + std::to_string(index(input)) +
                " before a region has produced it",
            Kind::region, id);
      }
    }
    if (region.outputs.empty()) {
      add("ir.producer", name + " has no output", Kind::region, id);
    }
    for (const ValueId output : region.outputs) {
      if (index(output) >= model_.values.size()) {
        add("ir.range", name + ": no value " + std::to_string(index(output)), Kind::region, id);
        continue;
      }
      const Value& value = model_.value(output);
      if (value.is_input()) {
        add("ir.producer",
            name + " returns value " + std::to_string(index(output)) + ", an input of the model",
            Kind::region, id);
      } else if (index(value.producer) != id) {
        add("ir.producer",
            name + " returns value " + std::to_string(index(output)) +
                ", whose producer is region " + std::to_string(index(value.producer)),
            Kind::region, id);
      } else if (produced_[index(output)]) {
        add("ir.producer", name + " returns value " + std::to_string(index(output)) + " twice",
            Kind::region, id);
      } else {
        produced_[index(output)] = true;
      }
    }
    for (const Affine& size :
         {region.flops, region.saved_bytes, region.transient_bytes, region.pending_bytes}) {
      if (size.per_row < 0 || size.fixed < 0) {
        add("ir.size", name + ": expected flops and bytes of at least 0, got a negative one",
            Kind::region, id);
        break;
      }
    }
    if (std::max({region.saved_bytes.per_row, region.saved_bytes.fixed,
                  region.transient_bytes.per_row, region.transient_bytes.fixed,
                  region.pending_bytes.per_row, region.pending_bytes.fixed}) > kMostBytes) {
      add("ir.size", name + " keeps more than 1 PiB a row", Kind::region, id);
    }
    kept(id, region.saved_values, region.inputs, region.outputs, "keeps");
    kept(id, region.pending_values, region.inputs, region.outputs, "awaits");
    kept(id, region.pending_gradients, {}, region.outputs, "gradients");
    reread(id, region);
    check_workspace(id, region.workspace);
    if (region.peaks) {
      const RegionPeaks& peaks = *region.peaks;
      for (const Most* const peak : {&peaks.evaluate, &peaks.forward, &peaks.backward,
                                     &peaks.backward_input, &peaks.backward_weight}) {
        check_peak(id, *peak);
      }
    }
  }

  // Values that the region has, in ascending order.
  void kept(std::uint32_t id, const std::vector<ValueId>& values,
            const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs,
            const char* what) {
    const std::string name = "region " + std::to_string(id) + ' ' + what;
    for (const ValueId value : values) {
      if (std::find(inputs.begin(), inputs.end(), value) == inputs.end() &&
          std::find(outputs.begin(), outputs.end(), value) == outputs.end()) {
        add("ir.kept", name + " value " + std::to_string(index(value)) + ", which is not its own",
            Kind::region, id);
        return;
      }
    }
    if (std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) != values.end()) {
      add("ir.kept", name + ": expected values in ascending order", Kind::region, id);
    }
  }

  void reread(std::uint32_t id, const Region& region) {
    const auto& parameters = region.reread_parameters;
    const std::string name = "region " + std::to_string(id) + " rereads";
    for (const ParameterId parameter : parameters) {
      if (std::find(region.parameters.begin(), region.parameters.end(), parameter) ==
          region.parameters.end()) {
        add("ir.kept",
            name + " parameter " + std::to_string(index(parameter)) + ", which is not its own",
            Kind::region, id);
        return;
      }
    }
    if (std::adjacent_find(parameters.begin(), parameters.end(), std::greater_equal<>()) !=
        parameters.end()) {
      add("ir.kept", name + ": expected parameters in ascending order", Kind::region, id);
    }
  }

  void check_workspace(std::uint32_t id, const std::vector<SizeFrom>& workspace) {
    std::int64_t before = 0;
    for (const SizeFrom& size : workspace) {
      if (std::min(size.bytes.per_row, size.bytes.fixed) < 0 ||
          std::max(size.bytes.per_row, size.bytes.fixed) > kMostBytes ||
          (before == 0 ? size.rows != 1 : size.rows <= before)) {
        add("ir.size",
            "region " + std::to_string(id) +
                ": expected a workspace from 0 to 1 PiB a row, by ascending rows from 1",
            Kind::region, id);
        return;
      }
      before = size.rows;
    }
  }

  void check_peak(std::uint32_t id, const Most& peak) {
    const std::string name = "region " + std::to_string(id);
    Most again;
    for (const Affine& size : peak.of) {
      if (std::min(size.per_row, size.fixed) < 0 ||
          std::max(size.per_row, size.fixed) > kMostBytes) {
        add("ir.size", name + ": expected peaks from 0 to 1 PiB a row", Kind::region, id);
        return;
      }
      again.add(size);
    }
    if (again != peak) {
      add("ir.size",
          name +
              ": expected no size of a peak to be covered by another, and those that grow "
              "fastest first",
          Kind::region, id);
    }
  }

  void loss() {
    if (!valid(model_.loss)) {
      add("ir.loss", "the model has no loss", Kind::graph, 0);
      return;
    }
    if (index(model_.loss) >= model_.values.size()) {
      add("ir.range", "loss: no value " + std::to_string(index(model_.loss)), Kind::graph, 0);
      return;
    }
    const Value& value = model_.value(model_.loss);
    if (value.is_input() || !is_floating(value.dtype) || !value.shape.empty()) {
      add("ir.loss",
          "the loss is value " + std::to_string(index(model_.loss)) +
              ": expected a floating-point scalar that a region computes",
          Kind::graph, 0);
    }
  }

  void labels() {
    if (!valid(model_.labels)) {
      add("ir.labels",
          "the model has no labels: expected an input whose entries other than -100 are counted",
          Kind::graph, 0);
      return;
    }
    if (index(model_.labels) >= model_.values.size()) {
      add("ir.range", "labels: no value " + std::to_string(index(model_.labels)), Kind::graph, 0);
      return;
    }
    const Value& value = model_.value(model_.labels);
    if (!value.is_input() || value.dtype != DType::int64) {
      add("ir.labels",
          "the labels are value " + std::to_string(index(model_.labels)) +
              ": expected an int64 input of the model",
          Kind::graph, 0);
    }
  }

  const ModelGraph& model_;
  const ItemPlaces& places_;
  std::set<std::string_view> input_names_;
  std::vector<bool> produced_;
  Diagnostics errors_;
};

}  // namespace

Status verify(const ModelGraph& model, const ItemPlaces& places) {
  return ModelVerifier(model, places).run();
}

Status verify(const ModelGraph& model) {
  return verify(model, ModelPlaces(model));
}

}  // namespace piper
