// The text of a model graph:
//
//     piper-model-graph 1
//     name "qwen3"
//     tag 0 layer
//     dimension 0 routed at most 8r+4
//     parameter 0 "model.embed_tokens.weight" float32 [256, 64] at "qwen3.cc":40:9
//     value 0 "tokens" int64 [r, 128] input
//     value 1 "labels" int64 [r, 128] input
//     value 2 float32 [r, 128, 64] from 0
//     value 3 float32 [] from 1
//     region 0 {layer=0} (%0) -> (%2) parameters (0) flops 16384r saved 65536r transient 0
//         pending 98304r keeps (%0) awaits (%0) gradients (%2) peaks evaluate (65536r)
//         forward (98304r) backward (65536r, 32r+1024) input () weight (98304r)
//         rereads (0) workspace (32768r+17536 from 1, 185472 from 6) at "qwen3.cc":44:5
//     region 1 {} (%2, %1) -> (%3) parameters () flops 0 saved 0 transient 0
//     loss %3
//     labels %1
//
// (a region is one line; what follows `transient` is left out where there is none: what is pending
// between BI and BW, the inputs and results among what is saved and what is pending, results whose
// gradients are, the most memory of each pass as the largest of a list, the parameters that BW
// reads, and what kernels take inside one operator, by how many rows there are).
// `r` is the number of rows of a micro-batch; in shapes, the name of a run-time dimension stands
// for a size that never exceeds its maximum. Only what print writes is accepted, to the byte.
#include <utility>

#include "core/ir/model_graph_verify.h"
#include "core/ir/text_reader.h"

namespace piper {
namespace {

template <typename Items, typename Append>
void append_list(std::string& text, const char* open, const char* close, const Items& items,
                 Append append) {
  text += open;
  bool first = true;
  for (const auto& item : items) {
    text += first ? "" : ", ";
    first = false;
    append(item);
  }
  text += close;
}

constexpr std::pair<std::string_view, std::vector<ValueId> Region::*> kValueLists[] = {
    {"keeps", &Region::saved_values},
    {"awaits", &Region::pending_values},
    {"gradients", &Region::pending_gradients},
};
constexpr std::pair<std::string_view, Most RegionPeaks::*> kPeaks[] = {
    {"evaluate", &RegionPeaks::evaluate},      {"forward", &RegionPeaks::forward},
    {"backward", &RegionPeaks::backward},      {"input", &RegionPeaks::backward_input},
    {"weight", &RegionPeaks::backward_weight},
};

class ModelGraphParser : public ItemPlaces {
 public:
  ModelGraphParser(std::string_view text, const std::string& source)
      : source_(source), in_(text, source, "ir.syntax") {}

  Expected<ModelGraph> parse() {
    in_.expect("piper-model-graph");
    if (const std::uint32_t version = in_.number(); in_.ok() && version != 1) {
      in_.refuse("expected version 1 of the text of a model graph, got " + std::to_string(version),
                 "ir.version");
    }
    in_.end_of_line();
    in_.expect("name");
    model_.name = in_.quoted();
    in_.end_of_line();
    items("tag", tag_lines_, [this] { model_.tag_names.emplace_back(in_.word()); });
    items("dimension", dimension_lines_, [this] {
      RunTimeDimension& dimension = model_.dimensions.emplace_back();
      dimension.name = in_.word();
      in_.expect("at");
      in_.expect("most");
      dimension.maximum = in_.affine();
    });
    items("parameter", parameter_lines_, [this] { model_.parameters.push_back(parameter()); });
    items("value", value_lines_, [this] { model_.values.push_back(value()); });
    items("region", region_lines_, [this] { model_.regions.push_back(region()); });
    if (in_.accept("loss")) {
      model_.loss = value_id();
      in_.end_of_line();
    }
    if (in_.accept("labels")) {
      model_.labels = value_id();
      in_.end_of_line();
    }
    if (!in_.at_end()) {
      in_.expected(
          "a line that starts with tag, dimension, parameter, value, region, loss or labels, in "
          "that "
          "order");
    }
    if (!in_.ok()) {
      return fail(in_.take_error());
    }
    PIPER_TRY(verify(model_, *this));
    return std::move(model_);
  }

  Location where(Kind kind, std::uint32_t id) const override {
    switch (kind) {
      case Kind::tag_name:
        return {source_, tag_lines_[id], 1};
      case Kind::dimension:
        return {source_, dimension_lines_[id], 1};
      case Kind::parameter:
        return {source_, parameter_lines_[id], 1};
      case Kind::value:
        return {source_, value_lines_[id], 1};
      case Kind::region:
        return {source_, region_lines_[id], 1};
      case Kind::graph:
        break;
    }
    return {source_, 1, 1};
  }

 private:
  template <typename Item>
  void items(std::string_view keyword, std::vector<std::uint32_t>& lines, Item item) {
    while (in_.accept(keyword)) {
      lines.push_back(in_.line());
      const std::uint32_t id = in_.number();
      if (in_.ok() && id + 1 != lines.size()) {
        in_.refuse("expected " + std::string(keyword) + " " + std::to_string(lines.size() - 1) +
                   ", got " + std::to_string(id));
      }
      item();
      in_.end_of_line();
      if (!in_.ok()) {
        return;
      }
    }
  }

  DType dtype() {
    const std::string_view name = in_.word();
    if (const auto known = parse_dtype(name)) {
      return *known;
    }
    in_.refuse("unknown dtype '" + std::string(name) + "'" +
               suggest(name, {"float32", "float64", "bfloat16", "int64", "bool"}));
    return DType::float32;
  }

  ValueId value_id() {
    in_.expect("%");
    return static_cast<ValueId>(in_.number());
  }

  Parameter parameter() {
    Parameter parameter;
    parameter.name = in_.quoted();
    parameter.dtype = dtype();
    in_.list("[", "]", [&] { parameter.shape.push_back(in_.integer()); });
    parameter.frozen = in_.accept("frozen");
    parameter.where = in_.location();
    return parameter;
  }

  Value value() {
    Value value;
    if (in_.peek("\"")) {
      value.name = in_.quoted();
    }
    value.dtype = dtype();
    in_.list("[", "]", [&] { dimension(value); });
    if (!in_.accept("input")) {
      in_.expect("from");
      value.producer = static_cast<RegionId>(in_.number());
    }
    return value;
  }

  // A size, or the name of a run-time dimension.
  void dimension(Value& value) {
    for (std::uint32_t id = 0; id < model_.dimensions.size(); ++id) {
      if (!model_.dimensions[id].name.empty() && in_.accept(model_.dimensions[id].name)) {
        value.run_time.resize(value.shape.size(), none<DimensionId>());
        value.run_time.push_back(DimensionId{id});
        value.shape.push_back(model_.dimensions[id].maximum);
        return;
      }
    }
    if (in_.ok() && !in_.at_number() && !in_.peek("r") && !in_.peek("-")) {
      const std::string name(in_.word());
      std::vector<std::string> known;
      for (const RunTimeDimension& dimension : model_.dimensions) {
        known.push_back(dimension.name);
      }
      in_.refuse("unknown run-time dimension '" + name + "'" + suggest(name, known),
                 "ir.dimension");
    }
    value.shape.push_back(in_.affine());
    if (!value.run_time.empty()) {
      value.run_time.push_back(none<DimensionId>());
    }
  }

  Region region() {
    Region region;
    in_.list("{", "}", [&] {
      const std::string_view name = in_.word();
      const auto tag = model_.find_tag(name);
      if (in_.ok() && !tag) {
        in_.refuse("unknown tag '" + std::string(name) + "'" + suggest(name, model_.tag_names),
                   "ir.tag");
      }
      in_.expect("=");
      region.tags.push_back({tag.value_or(TagId{}), in_.number()});
    });
    in_.list("(", ")", [&] { region.inputs.push_back(value_id()); });
    in_.expect("->");
    in_.list("(", ")", [&] { region.outputs.push_back(value_id()); });
    in_.expect("parameters");
    in_.list("(", ")",
             [&] { region.parameters.push_back(static_cast<ParameterId>(in_.number())); });
    in_.expect("flops");
    region.flops = in_.affine();
    in_.expect("saved");
    region.saved_bytes = in_.affine();
    in_.expect("transient");
    region.transient_bytes = in_.affine();
    if (in_.accept("pending")) {
      region.pending_bytes = in_.affine();
    }
    for (const auto& [name, values] : kValueLists) {
      if (in_.accept(name)) {
        in_.list("(", ")", [&] { (region.*values).push_back(value_id()); });
      }
    }
    if (in_.accept("peaks")) {
      region.peaks.emplace();
      for (const auto& [name, peak] : kPeaks) {
        in_.expect(name);
        in_.list("(", ")", [&] { ((*region.peaks).*peak).of.push_back(in_.affine()); });
      }
    }
    if (in_.accept("rereads")) {
      in_.list("(", ")",
               [&] { region.reread_parameters.push_back(static_cast<ParameterId>(in_.number())); });
    }
    if (in_.accept("workspace")) {
      in_.list("(", ")", [&] {
        SizeFrom& size = region.workspace.emplace_back();
        size.bytes = in_.affine();
        in_.expect("from");
        size.rows = in_.number();
      });
    }
    region.where = in_.location();
    return region;
  }

  std::string source_;
  TextReader in_;
  ModelGraph model_;
  std::vector<std::uint32_t> tag_lines_, dimension_lines_, parameter_lines_, value_lines_,
      region_lines_;
};

}  // namespace

std::string print(const ModelGraph& model) {
  std::string text = "piper-model-graph 1\nname ";
  append_quoted(text, model.name);
  text += '\n';
  for (std::size_t id = 0; id < model.tag_names.size(); ++id) {
    text += "tag " + std::to_string(id) + ' ' + model.tag_names[id] + '\n';
  }
  for (std::size_t id = 0; id < model.dimensions.size(); ++id) {
    text += "dimension " + std::to_string(id) + ' ' + model.dimensions[id].name + " at most ";
    append_affine(text, model.dimensions[id].maximum);
    text += '\n';
  }
  for (std::size_t id = 0; id < model.parameters.size(); ++id) {
    const Parameter& parameter = model.parameters[id];
    text += "parameter " + std::to_string(id) + ' ';
    append_quoted(text, parameter.name);
    text += ' ';
    text += to_string(parameter.dtype);
    append_list(text, " [", "]", parameter.shape,
                [&](std::int64_t size) { append_integer(text, size); });
    text += parameter.frozen ? " frozen" : "";
    append_location(text, parameter.where);
    text += '\n';
  }
  for (std::size_t id = 0; id < model.values.size(); ++id) {
    const Value& value = model.values[id];
    text += "value " + std::to_string(id) + ' ';
    if (!value.name.empty()) {
      append_quoted(text, value.name);
      text += ' ';
    }
    text += to_string(value.dtype);
    std::size_t next = 0;
    append_list(text, " [", "]", value.shape, [&](Affine size) {
      const DimensionId known =
          next < value.run_time.size() ? value.run_time[next] : none<DimensionId>();
      ++next;
      valid(known) ? void(text += model.dimensions[index(known)].name) : append_affine(text, size);
    });
    text += value.is_input() ? " input\n" : " from " + std::to_string(index(value.producer)) + '\n';
  }
  const auto append_value = [&](ValueId id) { text += '%' + std::to_string(index(id)); };
  const auto append_parameter = [&](ParameterId id) { text += std::to_string(index(id)); };
  for (std::size_t id = 0; id < model.regions.size(); ++id) {
    const Region& region = model.regions[id];
    text += "region " + std::to_string(id);
    append_list(text, " {", "}", region.tags, [&](Tag tag) {
      text += model.tag_names[index(tag.name)] + '=' + std::to_string(tag.index);
    });
    append_list(text, " (", ")", region.inputs, append_value);
    append_list(text, " -> (", ")", region.outputs, append_value);
    append_list(text, " parameters (", ")", region.parameters, append_parameter);
    text += " flops ";
    append_affine(text, region.flops);
    text += " saved ";
    append_affine(text, region.saved_bytes);
    text += " transient ";
    append_affine(text, region.transient_bytes);
    if (region.pending_bytes != Affine{}) {
      text += " pending ";
      append_affine(text, region.pending_bytes);
    }
    for (const auto& [name, values] : kValueLists) {
      if (!(region.*values).empty()) {
        (text += ' ') += name;
        append_list(text, " (", ")", region.*values, append_value);
      }
    }
    if (region.peaks) {
      text += " peaks";
      for (const auto& [name, peak] : kPeaks) {
        (text += ' ') += name;
        append_list(text, " (", ")", ((*region.peaks).*peak).of,
                    [&](Affine size) { append_affine(text, size); });
      }
    }
    if (!region.reread_parameters.empty()) {
      append_list(text, " rereads (", ")", region.reread_parameters, append_parameter);
    }
    if (!region.workspace.empty()) {
      append_list(text, " workspace (", ")", region.workspace, [&](const SizeFrom& size) {
        append_affine(text, size.bytes);
        text += " from " + std::to_string(size.rows);
      });
    }
    append_location(text, region.where);
    text += '\n';
  }
  if (valid(model.loss)) {
    text += "loss %" + std::to_string(index(model.loss)) + '\n';
  }
  if (valid(model.labels)) {
    text += "labels %" + std::to_string(index(model.labels)) + '\n';
  }
  return text;
}

Expected<ModelGraph> parse_model_graph(std::string_view text, const std::string& source) {
  PIPER_ASSIGN(ModelGraph model, ModelGraphParser(text, source).parse());
  if (auto difference = first_difference(text, print(model), source, "ir.form")) {
    return fail(std::move(*difference));
  }
  return model;
}

}  // namespace piper
