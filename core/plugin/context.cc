#include "core/plugin/context.h"

#include <utility>

#include "core/base/utf8.h"

namespace piper {
namespace {

// More elements than any job has: a count beyond is a mistake, and must not become an allocation.
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 28U;

piper_affine affine(const Affine& size) {
  return {size.per_row, size.fixed};
}

piper_dtype dtype_number(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return PIPER_FLOAT32;
    case DType::float64:
      return PIPER_FLOAT64;
    case DType::bfloat16:
      return PIPER_BFLOAT16;
    case DType::int64:
      return PIPER_INT64;
    case DType::boolean:
      return PIPER_BOOLEAN;
  }
  return PIPER_FLOAT32;
}

template <typename Id>
piper_span add_indices(JobView& view, const std::vector<Id>& ids) {
  std::vector<std::uint32_t> numbers;
  for (const Id id : ids) {
    numbers.push_back(index(id));
  }
  view.indices.push_back(std::move(numbers));
  return to_span(view.indices.back());
}

void add_model(JobView& view, const ModelGraph& model, const std::vector<std::int64_t>& costs) {
  for (const std::string& name : model.tag_names) {
    view.tag_names.push_back(to_abi(name));
  }
  for (const Parameter& parameter : model.parameters) {
    view.parameters.push_back({sizeof(piper_parameter_info), dtype_number(parameter.dtype),
                               to_abi(parameter.name), to_span(parameter.shape), parameter.bytes(),
                               parameter.frozen ? 1U : 0U, 0, view.place(parameter.where)});
  }
  for (const Value& value : model.values) {
    std::vector<piper_affine> shape;
    for (const Affine& size : value.shape) {
      shape.push_back(affine(size));
    }
    view.shapes.push_back(std::move(shape));
    view.values.push_back({sizeof(piper_value_info), dtype_number(value.dtype), to_abi(value.name),
                           to_span(view.shapes.back()), affine(value.bytes()),
                           value.is_input() ? PIPER_NONE : index(value.producer), 0});
  }
  view.region_count = model.regions.size();
  for (std::size_t r = 0; r < model.regions.size(); ++r) {
    const Region& region = model.regions[r];
    std::vector<piper_tag_value> tags;
    for (const Tag& tag : region.tags) {
      tags.push_back({index(tag.name), tag.index});
    }
    view.region_tags.push_back(std::move(tags));
    view.regions.push_back({sizeof(piper_region_info), 0,
                            make_handle<piper_region>(r, view.generation),
                            to_span(view.region_tags.back()), add_indices(view, region.parameters),
                            add_indices(view, region.inputs), add_indices(view, region.outputs),
                            affine(region.flops), affine(region.saved_bytes),
                            affine(region.transient_bytes), view.place(region.where), costs[r]});
  }
  const auto value_number = [](ValueId value) { return valid(value) ? index(value) : PIPER_NONE; };
  view.graph = {sizeof(piper_graph),        value_number(model.loss),
                value_number(model.labels), 0,
                to_abi(model.name),         to_span(view.tag_names),
                to_span(view.parameters),   to_span(view.values),
                to_span(view.regions)};
}

void add_options(JobView& view, const std::vector<Option>& options) {
  for (const Option& option : options) {
    JobView::OptionView shown;
    shown.where = view.place(option.where);
    for (const std::string& text : option.texts) {
      shown.texts.push_back(to_abi(text));
    }
    for (const Location& where : option.places) {
      shown.wheres.push_back(view.place(where));
    }
    view.options.push_back(std::move(shown));
  }
}

}  // namespace

std::int64_t largest_microbatch(const Config& config) {
  const auto divide = [](std::int64_t rows, std::int64_t parts) {
    return parts < 1 ? rows : (rows + parts - 1) / parts;
  };
  return divide(divide(config.training.global_batch_size, config.mesh.size("dp")),
                config.training.microbatches);
}

JobView::JobView(const Config& config, const ModelGraph& captured,
                 const std::vector<std::int64_t>& costs, const ResolvedStrategy& resolved,
                 std::uint32_t number)
    : generation(number), model(captured), strategy(resolved), mesh(config.mesh) {
  add_model(*this, captured, costs);
  for (const auto& [name, size] : config.mesh.axes) {
    axes.push_back({sizeof(piper_axis), size, to_abi(name), place(config.where("mesh." + name))});
  }
  job = {sizeof(piper_job),
         mesh.world(),
         static_cast<std::uint32_t>(config.training.microbatches),
         0,
         largest_microbatch(config),
         config.training.global_batch_size,
         to_span(axes),
         place(config.where("training.microbatches"))};
  add_options(*this, resolved.options);
}

piper_where JobView::place(const Location& where) {
  places.push_back(where);
  return make_handle<piper_where>(places.size() - 1, generation);
}

std::size_t handle_index(std::uint64_t bits, std::uint32_t generation, std::size_t count) {
  const std::uint64_t number = bits & 0xffffffffU;
  return bits >> 32U != generation || number == 0 || number > count
             ? count
             : static_cast<std::size_t>(number - 1);
}

}  // namespace piper

piper_code piper_ctx::refuse(piper_code result, const char* code, const std::string& message,
                             piper::Location where) {
  if (!where.known() && view != nullptr) {
    where = view->strategy.config->where;
  }
  errors.push_back(piper::error(code, plugin + ": " + message, std::move(where)));
  return result;
}

piper_code piper_ctx::refuse(piper_code result, piper::Diagnostics diagnostics) {
  for (piper::Diagnostic& diagnostic : diagnostics) {
    refuse(result, diagnostic.code.c_str(), diagnostic.message, diagnostic.where);
    errors.back().notes = std::move(diagnostic.notes);
  }
  return result;
}

piper::Location piper_ctx::locate(piper_where where) const {
  if (view == nullptr) {
    return {};
  }
  const std::size_t place = piper::handle_index(where.bits, generation, view->places.size());
  return place < view->places.size() ? view->places[place] : view->strategy.config->where;
}

bool piper_ctx::read(const char* what, piper_str text, std::string& out) {
  if (text.ptr == nullptr && text.len > 0) {
    null(what);
    return false;
  }
  constexpr std::uint64_t longest = 1U << 16U;
  if (text.len > longest || !piper::is_utf8({text.ptr, static_cast<std::size_t>(text.len)})) {
    refuse(PIPER_INVALID, "abi.string",
           std::string(what) + ": expected UTF-8 of at most 64 KiB, got " +
               std::to_string(text.len) + " bytes" + (text.len > longest ? "" : " that are not"));
    return false;
  }
  out.assign(text.ptr == nullptr ? "" : text.ptr, static_cast<std::size_t>(text.len));
  return true;
}

bool piper_ctx::check_struct(const char* what, const void* pointer, std::uint32_t size,
                             std::size_t first_size) {
  if (pointer == nullptr) {
    null(what);
    return false;
  }
  if (size < first_size) {
    refuse(PIPER_INVALID, "abi.struct_size",
           std::string(what) + ": expected a struct_size of at least " +
               std::to_string(first_size) + ", got " + std::to_string(size));
    return false;
  }
  return true;
}

bool piper_ctx::check_span(const char* what, const piper_span& span, std::size_t element) {
  if (span.count == 0) {
    return true;
  }
  if (span.ptr == nullptr) {
    null(what);
    return false;
  }
  if (span.count > piper::kMaxCount || span.stride < element) {
    refuse(PIPER_INVALID, "abi.span",
           std::string(what) + ": expected at most " + std::to_string(piper::kMaxCount) +
               " elements of at least " + std::to_string(element) + " bytes, got " +
               std::to_string(span.count) + " of " + std::to_string(span.stride));
    return false;
  }
  return true;
}
