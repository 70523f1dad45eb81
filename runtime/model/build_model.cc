// A model function is run for two row counts, which gives every size as a function of the rows, and
// with `measure` for a third one, which must lie on the line through the other two.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "runtime/model/build.h"
#include "runtime/model/kernel_workspace.h"
#include "runtime/model/library_code.h"
#include "runtime/model/meta_kernels.h"
#include "runtime/model/recorder.h"
#include "runtime/model/refused.h"

namespace piper {
namespace {

constexpr std::int64_t kRows[] = {2, 3, 5};

Expected<Recorder> record(const Config& config, ModelFunction function, std::int64_t rows,
                          bool measure) {
  const auto failed = [&](const std::string& what) {
    return fail(error("model.failed", "building model '" + config.model.name + "' failed: " + what,
                      config.where("model.name")));
  };
  std::optional<ForeignCode> foreign;
  if (!config.model.library.empty()) {
    foreign.emplace(library_code(config, "build"));
  }
  try {
    Recorder recorder(config, rows, measure);
    recorder.run(function);
    return recorder;
  } catch (const Refused& refused) {
    return fail(refused.diagnostics());
  } catch (const c10::Error& failure) {
    return failed(first_line(failure.what_without_backtrace()));
  } catch (const std::exception& failure) {
    return failed(first_line(failure.what()));
  } catch (...) {
    return failed("it threw something that is no std::exception");
  }
}

// The line through (kRows[0], a) and (kRows[1], b).
Affine line(std::int64_t a, std::int64_t b) {
  const std::int64_t slope = (b - a) / (kRows[1] - kRows[0]);
  return {slope, a - slope * kRows[0]};
}

Diagnostic not_affine(const std::string& what, const Location& where) {
  return error("model.not_affine",
               what +
                   " of the region: expected a fixed part and a part for each row, got another "
                   "dependence on the number of rows",
               where);
}

// Puts the shapes of `graph`, recorded for kRows[0], on the line to those of `other`, recorded for
// kRows[1].
Status fit_shapes(ModelGraph& graph, const ModelGraph& other) {
  const Location where = graph.regions.empty() ? Location{} : graph.regions.back().where;
  if (graph.regions.size() != other.regions.size() || graph.values.size() != other.values.size() ||
      graph.parameters != other.parameters) {
    return fail(error("model.not_affine",
                      "the model has other regions or parameters for another number of rows",
                      where));
  }
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    Value& value = graph.values[i];
    if (value.is_input()) {
      continue;
    }
    const Location& at = graph.region(value.producer).where;
    const Value& second = other.values[i];
    if (value.shape.size() != second.shape.size()) {
      return fail(not_affine("the shape of a result", at));
    }
    int row_dimensions = 0;
    for (std::size_t dim = 0; dim < value.shape.size(); ++dim) {
      value.shape[dim] = line(value.shape[dim].fixed, second.shape[dim].fixed);
      row_dimensions += value.shape[dim].per_row != 0 ? 1 : 0;
    }
    if (row_dimensions > 1) {
      return fail(not_affine("the shape of a result", at));
    }
  }
  return {};
}

Status check_shapes(const ModelGraph& graph, const ModelGraph& third) {
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    for (std::size_t dim = 0; dim < graph.values[i].shape.size(); ++dim) {
      if (!graph.values[i].is_input() &&
          graph.values[i].shape[dim].at(kRows[2]) != third.values[i].shape[dim].fixed) {
        return fail(
            not_affine("the shape of a result", graph.region(graph.values[i].producer).where));
      }
    }
  }
  return {};
}

bool covers_size(Affine a, Affine b) {
  return a.per_row >= b.per_row && a.fixed >= b.fixed;
}

// The largest of a history; nothing where one of its moments is no line in the rows.
std::optional<Most> fit(const RegionLiveness::History& two, const RegionLiveness::History& three,
                        const RegionLiveness::History& five) {
  if (two.size() != three.size() || two.size() != five.size()) {
    return std::nullopt;
  }
  Most most;
  for (std::size_t i = 0; i < two.size(); ++i) {
    const Affine live = line(two[i], three[i]);
    if (live.at(kRows[2]) != five[i]) {
      return std::nullopt;
    }
    if (live.per_row > 0 || live.fixed > 0) {
      most.add(live);
    }
  }
  return most;
}

std::vector<ValueId> values_at(const std::vector<ValueId>& values,
                               const std::vector<std::size_t>& positions) {
  std::vector<ValueId> chosen;
  for (const std::size_t position : positions) {
    chosen.push_back(values[position]);
  }
  return chosen;
}

// Ascending, each once.
std::vector<ValueId> joined(std::vector<ValueId> a, const std::vector<ValueId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

// Those that no other product of the region covers for any rows; nothing where there are other
// products for other rows.
std::optional<std::vector<RepackedProduct>> fit_products(const RegionLiveness& two,
                                                         const RegionLiveness& three,
                                                         const RegionLiveness& five) {
  if (two.products.size() != three.products.size() || two.products.size() != five.products.size()) {
    return std::nullopt;
  }
  std::vector<RepackedProduct> kept;
  for (std::size_t i = 0; i < two.products.size(); ++i) {
    const auto size = [&](std::int64_t NarrowProduct::*of) {
      return line(two.products[i].*of, three.products[i].*of);
    };
    const RepackedProduct product{size(&NarrowProduct::rows), size(&NarrowProduct::inner),
                                  size(&NarrowProduct::columns), two.products[i].transposed};
    if (product.rows.at(kRows[2]) != five.products[i].rows ||
        product.inner.at(kRows[2]) != five.products[i].inner ||
        product.columns.at(kRows[2]) != five.products[i].columns) {
      return std::nullopt;
    }
    const auto covers = [](const RepackedProduct& a, const RepackedProduct& b) {
      return a.transposed == b.transposed && covers_size(a.rows, b.rows) &&
             covers_size(a.inner, b.inner) && covers_size(a.columns, b.columns);
    };
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const RepackedProduct& other) { return covers(other, product); })) {
      std::erase_if(kept, [&](const RepackedProduct& other) { return covers(product, other); });
      kept.push_back(product);
    }
  }
  return kept;
}

Status fit_memory(Region& region, const RegionLiveness& two, const RegionLiveness& three,
                  const RegionLiveness& five) {
  bool fits = true;
  const auto size = [&](std::int64_t RegionLiveness::*bytes) {
    const Affine found = line(two.*bytes, three.*bytes);
    fits = fits && found.at(kRows[2]) == five.*bytes;
    return found;
  };
  const auto peak = [&](RegionLiveness::History RegionLiveness::*history) {
    const std::optional<Most> found = fit(two.*history, three.*history, five.*history);
    fits = fits && found.has_value();
    return found.value_or(Most{});
  };
  region.saved_bytes = size(&RegionLiveness::saved_bytes);
  region.pending_bytes = size(&RegionLiveness::pending_bytes);
  region.saved_values = joined(values_at(region.inputs, two.saved_inputs),
                               values_at(region.outputs, two.saved_results));
  region.pending_values = joined(values_at(region.inputs, two.pending_inputs),
                                 values_at(region.outputs, two.pending_results));
  region.pending_gradients = values_at(region.outputs, two.pending_gradients);
  for (const std::size_t position : two.reread_parameters) {
    region.reread_parameters.push_back(region.parameters[position]);
  }
  std::sort(region.reread_parameters.begin(), region.reread_parameters.end());
  const std::optional<std::vector<RepackedProduct>> products = fit_products(two, three, five);
  fits = fits && products.has_value();
  region.workspace = kernel_workspace(products.value_or(std::vector<RepackedProduct>()));
  const RegionPeaks peaks{peak(&RegionLiveness::evaluate), peak(&RegionLiveness::forward),
                          peak(&RegionLiveness::backward), peak(&RegionLiveness::backward_input),
                          peak(&RegionLiveness::backward_weight)};
  if (two.complete) {
    region.peaks = peaks;
  }
  const Affine kept = size(&RegionLiveness::kept_bytes);
  for (const Affine live : peaks.forward.of) {
    region.transient_bytes.per_row =
        std::max(region.transient_bytes.per_row, live.per_row - kept.per_row);
    region.transient_bytes.fixed = std::max(region.transient_bytes.fixed, live.fixed - kept.fixed);
  }
  return fits ? Status() : fail(not_affine("the memory", region.where));
}

Status fit_costs(ModelGraph& graph, const Recorder& a, const Recorder& b, const Recorder& c) {
  for (std::size_t i = 0; i < graph.regions.size(); ++i) {
    Region& region = graph.regions[i];
    region.flops = line(a.traces()[i].flops, b.traces()[i].flops);
    if (region.flops.at(kRows[2]) != c.traces()[i].flops) {
      return fail(not_affine("the floating-point operations", region.where));
    }
    PIPER_TRY(fit_memory(region, a.liveness()[i], b.liveness()[i], c.liveness()[i]));
  }
  return {};
}

}  // namespace

Expected<LiveModel> build_model(const Config& config, ModelFunction function, bool measure) {
  install_meta_kernels();
  PIPER_ASSIGN(Recorder two, record(config, function, kRows[0], measure));
  PIPER_ASSIGN(Recorder three, record(config, function, kRows[1], measure));
  PIPER_TRY(fit_shapes(two.model().graph, three.model().graph));
  if (measure) {
    PIPER_ASSIGN(Recorder five, record(config, function, kRows[2], measure));
    PIPER_TRY(check_shapes(two.model().graph, five.model().graph));
    PIPER_TRY(fit_costs(two.model().graph, two, three, five));
  }
  return std::move(two.model());
}

}  // namespace piper
