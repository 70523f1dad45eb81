#include "core/directives/split.h"

#include "core/directives/annotated.h"
#include "core/directives/directive.h"
#include "core/directives/toml/table.h"

namespace piper {
namespace {

Expected<Annotated> apply(Annotated dag, const SplitDirective& split, const Provenance& from,
                          std::uint32_t origin) {
  const auto refuse = [&](std::string code, const std::string& why) {
    return fail(error(std::move(code), from.plugin + ": split: " + why, from.where));
  };
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, split.filter, from, "split"));
  if (split.dim != "MB") {
    return refuse("split.dim",
                  "expected dim 'MB' (the rows of the batch), got '" + split.dim + "'");
  }
  if (regions.size() != dag.model.regions.size()) {
    return refuse("split.part", "expected a filter that selects the whole model, got " +
                                    to_string(split.filter) + ", which selects " +
                                    std::to_string(regions.size()) + " of " +
                                    std::to_string(dag.model.regions.size()) + " regions");
  }
  if (split.n < 1) {
    return refuse("split.count", "expected n of at least 1, got 0");
  }
  if (dag.split_origin && dag.microbatches != split.n) {
    const Provenance& first = dag.origins[*dag.split_origin];
    Diagnostic twice =
        error("split.twice",
              from.plugin + ": split: expected the " + std::to_string(dag.microbatches) +
                  " micro-batches of " + first.plugin + ", got " + std::to_string(split.n),
              from.where);
    twice.note("first split by " + first.plugin, first.where);
    return fail(std::move(twice));
  }
  if (split.n > dag.global_rows) {
    return refuse("split.rows", "expected at most " + std::to_string(dag.global_rows) +
                                    " parts (the rows of a step), got " + std::to_string(split.n));
  }

  dag.split_origin = origin;
  dag.microbatches = split.n;
  return dag;
}

std::string text(const SplitDirective& split) {
  return "split " + to_string(split.filter) + " dim=" + split.dim + " n=" + std::to_string(split.n);
}

void claim(const SplitDirective&, const Provenance& from, Claims& claims) {
  claims.add(Claim::Kind::split, "", from);
}

}  // namespace

template <>
const Descriptor<SplitDirective>& descriptor() {
  using Type = Key::Type;
  static const Descriptor<SplitDirective> split{
      .kind = {.op = "split",
               .phase = DirectivePhase::split,
               .keys = {filter_key("filter"),
                        plain_key("n!", Type::integer, "the number of micro-batches", kCount),
                        plain_key("dim", Type::text,
                                  "the dimension that is cut; not given: `MB`, the rows")},
               .read =
                   [](DirectiveTable& table, Directive& into) {
                     into.what = SplitDirective{table.filter(), table.text("dim", "MB"),
                                                table.number("n", 1)};
                   }},
      .text = text,
      .apply = apply,
      .claim = claim};
  return split;
}

}  // namespace piper
