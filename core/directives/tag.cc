#include "core/directives/tag.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "core/directives/annotated.h"
#include "core/directives/directive.h"
#include "core/directives/partition.h"
#include "core/directives/toml/table.h"

namespace piper {
namespace {

using Cuts = std::vector<std::pair<RegionId, std::uint32_t>>;  // region, part

// What a model may call a tag, too.
bool is_plain(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '_';
                     }) &&
         (name[0] < '0' || name[0] > '9');
}

Status give(Annotated& dag, const std::string& name, const Cuts& cuts, const Provenance& from,
            std::uint32_t origin) {
  if (name.empty() || name == "MB" || name == "PASS" || name == "REGION") {
    return fail(error("tag.name",
                      from.plugin +
                          ": expected a tag name other than '', 'MB', 'PASS' and 'REGION', got '" +
                          name + "'",
                      from.where));
  }
  if (!is_plain(name)) {
    return fail(
        error("tag.name",
              from.plugin + ": expected a tag name of letters, digits and '_', got '" + name + "'",
              from.where));
  }
  const TagId id = dag.model.intern_tag(name);
  for (const auto& [region, part] : cuts) {
    const std::optional<std::uint32_t> old = dag.model.region(region).tag(id);
    if (old && *old != part) {
      Diagnostic conflict =
          error("tag.conflict",
                from.plugin + ": " + describe(dag.model, region) + " already has " + name + "=" +
                    std::to_string(*old) + "; cannot give it " + name + "=" + std::to_string(part),
                from.where);
      if (const auto first = dag.tag_origin.find({region, id}); first != dag.tag_origin.end()) {
        conflict.note("first given by " + dag.origins[first->second].plugin,
                      dag.origins[first->second].where);
      }
      return fail(std::move(conflict));
    }
  }
  for (const auto& [region, part] : cuts) {
    Region& edited = dag.model.regions[index(region)];
    if (!edited.tag(id)) {
      edited.tags.push_back({id, part});
      dag.tag_origin[{region, id}] = origin;
    }
  }
  dag.distinguish(id);
  return {};
}

std::string imbalance(const std::vector<ModelPart>& parts, const TagDirective& tag) {
  std::int64_t total = 0, largest = 0;
  for (const ModelPart& part : parts) {
    largest = std::max(largest, part.cost);
    total += part.cost;
  }
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.3f",
                total == 0 ? 1.0
                           : static_cast<double>(largest) * static_cast<double>(parts.size()) /
                                 static_cast<double>(total));
  return "tag " + tag.name + ": " + std::to_string(parts.size()) + " parts, the largest " + ratio +
         " times the mean";
}

Expected<Cuts> cut(Annotated& dag, const TagDirective& tag, const std::vector<RegionId>& regions,
                   const Provenance& from) {
  const Partition& how = *tag.partition;
  const auto refuse = [&](std::string code, const std::string& why) {
    return fail(error(std::move(code), from.plugin + ": tag " + tag.name + ": " + why, from.where));
  };
  if (!how.over.empty() && !dag.model.find_tag(how.over)) {
    return refuse("directive.unknown_tag", "the model has no tag '" + how.over + "'" +
                                               suggest(how.over, dag.model.tag_names));
  }
  const std::int64_t rows = std::max<std::int64_t>(1, dag.global_rows / dag.microbatches);
  const Expected<std::vector<ModelPart>> parts =
      cut_into_parts(dag.model, regions, how,
                     [&](RegionId region) { return cost_of(dag.model, region, how.by, rows); });
  if (!parts) {
    return refuse(parts.error().front().code, parts.error().front().message);
  }
  Cuts cuts;
  for (std::uint32_t part = 0; part < parts->size(); ++part) {
    for (const RegionId region : (*parts)[part].regions) {
      cuts.emplace_back(region, part);
    }
  }
  dag.remarks.push_back(imbalance(*parts, tag));
  return cuts;
}

Expected<Annotated> apply(Annotated dag, const TagDirective& tag, const Provenance& from,
                          std::uint32_t origin) {
  PIPER_ASSIGN(const std::vector<RegionId> regions, select_regions(dag, tag.filter, from, "tag"));
  Cuts cuts;
  if (tag.partition) {
    PIPER_ASSIGN(cuts, cut(dag, tag, regions, from));
  } else {
    for (const RegionId region : regions) {
      cuts.emplace_back(region, tag.index);
    }
  }
  PIPER_TRY(give(dag, tag.name, cuts, from, origin));
  return dag;
}

// The indices of its tags that a directive gave or an order tells apart.
void key(const Annotated& dag, RegionId id, std::vector<std::uint32_t>& key) {
  std::vector<Tag> tags = dag.model.region(id).tags;
  std::erase_if(tags, [&](const Tag& tag) { return !dag.distinguishes(tag.name); });
  std::sort(tags.begin(), tags.end(),
            [](const Tag& a, const Tag& b) { return index(a.name) < index(b.name); });
  for (const Tag& tag : tags) {
    key.insert(key.end(), {index(tag.name), tag.index});
  }
}

std::string text(const TagDirective& tag) {
  if (!tag.partition) {
    return "tag " + to_string(tag.filter) + " " + tag.name + "=" + std::to_string(tag.index);
  }
  constexpr std::array<std::string_view, 5> by{"count", "flops", "bytes", "boundaries", "cost"};
  const Partition& partition = *tag.partition;
  return "tag " + to_string(tag.filter) + " " + tag.name + "=0.." +
         std::to_string(partition.parts - 1) + " over '" + partition.over + "' by " +
         std::string(by[static_cast<std::size_t>(partition.by)]) +
         (partition.by == Partition::By::boundaries ? " [" + number_list(partition.boundaries) + "]"
                                                    : "");
}

TagDirective from_table(DirectiveTable& table) {
  TagDirective tag{table.filter(), table.text("name", ""), table.number("index", 0)};
  const int forms =
      int{table.has("index")} + int{table.has("parts")} + int{table.has("boundaries")};
  if (forms != 1) {
    table.missing("one of 'index', 'parts' and 'boundaries'", std::to_string(forms));
  }
  if (table.has("by") && !table.has("parts")) {
    table.missing("'parts' with 'by'", "none");
  }
  if (table.has("over") && table.has("index")) {
    table.missing("'parts' or 'boundaries' with 'over'", "'index'");
  }
  if (table.has("index")) {
    return tag;
  }
  Partition cut;
  const std::string by = table.text("by", "flops");
  cut.by = table.has("boundaries") ? Partition::By::boundaries
           : by == "bytes"         ? Partition::By::bytes
           : by == "count"         ? Partition::By::count
                                   : Partition::By::flops;
  cut.over = table.text("over", cut.over);
  cut.boundaries = table.compound<std::vector<std::uint32_t>>("boundaries", read_indices);
  cut.parts = table.number("parts", static_cast<std::uint32_t>(cut.boundaries.size() + 1));
  tag.partition = std::move(cut);
  return tag;
}

}  // namespace

template <>
const Descriptor<TagDirective>& descriptor() {
  using Type = Key::Type;
  using Form = DirectiveKey::Form;
  static const Descriptor<TagDirective> tag{
      .kind = {.op = "tag",
               .phase = DirectivePhase::tag,
               .keys = {filter_key("filter!"),
                        plain_key("name!", Type::text, "the tag that the regions get"),
                        plain_key("index", Type::integer, "its index", kIndex),
                        plain_key("parts", Type::integer,
                                  "instead of `index`: cut the regions into that many consecutive "
                                  "parts",
                                  kCount),
                        choice_key("by", {"flops", "bytes", "count"},
                                   "with `parts`: what is balanced; not given: `flops`"),
                        key_of("boundaries", Form::indices,
                               "instead of `index`: the first unit of each part but the first"),
                        plain_key(
                            "over", Type::text,
                            "with `parts` or `boundaries`: the tag whose indices are the units; "
                            "not given: `layer`")},
               .read = [](DirectiveTable& table,
                          Directive& into) { into.what = from_table(table); },
               .distinguishes = Distinguishes::regions,
               .key = key},
      .text = text,
      .apply = apply};
  return tag;
}

}  // namespace piper
