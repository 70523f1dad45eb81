#include "core/directives/tag.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const TagDirective& tag, const Provenance& from,
                          std::uint32_t) {
  PIPER_ASSIGN(const std::vector<RegionId> regions, select_regions(dag, tag.filter, from, "tag"));
  if (tag.name.empty() || tag.name == "MB" || tag.name == "PASS") {
    return fail(error("tag.name",
                      from.plugin + ": expected a tag name other than '', 'MB' and 'PASS', got '" +
                          tag.name + "'",
                      from.where));
  }
  const TagId id = dag.model.intern_tag(tag.name);
  for (const RegionId region : regions) {
    const std::optional<std::uint32_t> old = dag.model.region(region).tag(id);
    if (old && *old != tag.index) {
      return fail(error("tag.conflict",
                        from.plugin + ": " + describe(dag.model, region) + " already has " +
                            tag.name + "=" + std::to_string(*old) + "; cannot give it " + tag.name +
                            "=" + std::to_string(tag.index),
                        from.where));
    }
  }

  for (const RegionId region : regions) {
    Region& edited = dag.model.regions[index(region)];
    if (!edited.tag(id)) {
      edited.tags.push_back({id, tag.index});
    }
  }
  dag.distinguishing.resize(dag.model.tag_names.size(), false);
  dag.distinguishing[index(id)] = true;
  return dag;
}

}  // namespace piper
