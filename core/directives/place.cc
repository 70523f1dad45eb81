#include "core/directives/place.h"

#include <algorithm>
#include <numeric>

#include "core/directives/annotated.h"
#include "core/directives/directive.h"
#include "core/directives/mesh_ranks.h"
#include "core/directives/toml/table.h"

namespace piper {
namespace {

bool share(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  return a.empty() || b.empty() ||
         std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

Expected<Annotated> apply(Annotated dag, const PlaceDirective& place, const Provenance& from,
                          std::uint32_t origin) {
  PIPER_TRY(check_ranks(place.ranks, dag.world, from, "place " + to_string(place.filter)));
  std::vector<std::uint32_t> microbatches;
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, place.filter, from, "place", &microbatches));
  if (place.stream != "compute") {
    return fail(error("place.stream",
                      from.plugin + ": place " + to_string(place.filter) +
                          ": expected stream 'compute' (one compute stream a rank), got '" +
                          place.stream + "'",
                      from.where));
  }
  for (const RegionId region : regions) {
    for (const Annotated::Placement& old : dag.placements[index(region)]) {
      if (!share(old.microbatches, microbatches) ||
          (old.ranks == place.ranks && old.microbatches == microbatches)) {
        continue;
      }
      const Provenance& first = dag.origins[old.origin];
      Diagnostic conflict = error("place.conflict",
                                  from.plugin + ": " + describe(dag.model, region) +
                                      " is already placed; cannot place it again",
                                  from.where);
      conflict.note("first placed by " + first.plugin, first.where);
      return fail(std::move(conflict));
    }
  }

  for (const RegionId region : regions) {
    std::vector<Annotated::Placement>& places = dag.placements.edit(index(region));
    const bool known =
        std::any_of(places.begin(), places.end(), [&](const Annotated::Placement& p) {
          return p.ranks == place.ranks && p.microbatches == microbatches;
        });
    if (!known) {
      places.push_back({place.ranks, microbatches, origin});
      std::sort(places.begin(), places.end(),
                [](const auto& a, const auto& b) { return a.microbatches < b.microbatches; });
    }
  }
  return dag;
}

// Who places anything, each once: "hanayo", "hanayo, job".
std::string placers(const Annotated& dag, const Provenance*& first) {
  std::vector<std::uint32_t> origins;
  for (const std::vector<Annotated::Placement>& places : dag.placements) {
    for (const Annotated::Placement& place : places) {
      if (std::find(origins.begin(), origins.end(), place.origin) == origins.end()) {
        origins.push_back(place.origin);
      }
    }
  }
  std::string names;
  for (const std::uint32_t origin : origins) {
    const Provenance& from = dag.origins[origin];
    first = first == nullptr ? &from : first;
    const std::string name = from.plugin;
    if ((", " + names + ", ").find(", " + name + ", ") == std::string::npos) {
      names += (names.empty() ? "" : ", ") + name;
    }
  }
  return names;
}

// Every micro-batch of every region has a place.
Status check_placed(const Annotated& dag) {
  for (std::uint32_t r = 0; r < dag.model.regions.size(); ++r) {
    std::size_t placed = 0;
    for (const Annotated::Placement& place : dag.placements[r]) {
      placed += place.microbatches.empty() ? dag.microbatches : place.microbatches.size();
    }
    if (placed < dag.microbatches) {
      const Provenance* first = nullptr;
      const std::string who = placers(dag, first);
      return fail(error("place.missing",
                        who + ": " + describe(dag.model, RegionId{r}) +
                            (placed == 0 ? " is placed nowhere, but other regions are"
                                         : " is placed for " + std::to_string(placed) + " of " +
                                               std::to_string(dag.microbatches) + " micro-batches"),
                        first->where));
    }
  }
  return {};
}

// Every rank has something to run.
Status check_idle(const Annotated& dag) {
  std::vector<bool> has_place(dag.world, false);
  for (const std::vector<Annotated::Placement>& places : dag.placements) {
    for (const Annotated::Placement& place : places) {
      for (const std::uint32_t rank : place.ranks.ranks) {
        has_place[rank] = true;
      }
    }
  }
  const auto idle = std::find(has_place.begin(), has_place.end(), false);
  if (idle != has_place.end()) {
    const Annotated::Placement& first = dag.placements[0].front();
    return fail(error("place.idle",
                      "expected places that use all " + std::to_string(dag.world) +
                          " ranks, but nothing is placed on rank " +
                          std::to_string(idle - has_place.begin()),
                      dag.origins[first.origin].where));
  }
  return {};
}

// Two places are equal or disjoint.
Status check_overlap(const Annotated& dag) {
  using First = std::pair<RegionId, const Annotated::Placement*>;
  std::vector<First> first_on(dag.world, First{none<RegionId>(), nullptr});
  for (std::uint32_t r = 0; r < dag.model.regions.size(); ++r) {
    for (const Annotated::Placement& place : dag.placements[r]) {
      for (const std::uint32_t rank : place.ranks.ranks) {
        auto& [region, other] = first_on[rank];
        if (other == nullptr) {
          first_on[rank] = {RegionId{r}, &place};
        } else if (other->ranks != place.ranks) {
          Diagnostic overlap =
              error("place.overlap",
                    describe(dag.model, RegionId{r}) + " and " + describe(dag.model, region) +
                        " are placed on groups that share rank " + std::to_string(rank) +
                        "; expected equal or disjoint groups",
                    dag.origins[place.origin].where);
          overlap.note("the other place", dag.origins[other->origin].where);
          return fail(std::move(overlap));
        }
      }
    }
  }
  return {};
}

// Where nobody says otherwise, everything runs on all ranks.
Expected<Annotated> complete(Annotated dag, const Config&) {
  const bool nothing = std::all_of(dag.placements.begin(), dag.placements.end(),
                                   [](const auto& places) { return places.empty(); });
  if (nothing) {
    Ranks all;
    all.ranks.resize(dag.world);
    std::iota(all.ranks.begin(), all.ranks.end(), 0U);
    return apply(std::move(dag), PlaceDirective{{}, all, "compute"}, {"core", {}}, 0);
  }
  PIPER_TRY(check_placed(dag));
  PIPER_TRY(check_overlap(dag));
  PIPER_TRY(check_idle(dag));
  return dag;
}

void key(const Annotated& dag, RegionId region, std::vector<std::uint32_t>& key) {
  for (const Annotated::Placement& place : dag.placements[index(region)]) {
    key.push_back(place.ranks.ranks.front());
    key.insert(key.end(), place.microbatches.begin(), place.microbatches.end());
  }
}

std::string mark(const Annotated& dag, RegionId region) {
  std::string text;
  for (const Annotated::Placement& place : dag.placements[index(region)]) {
    text += " @" + packed_list(place.ranks.ranks);
    text += place.microbatches.empty() ? "" : " MB " + packed_list(place.microbatches);
  }
  return text.empty() ? " @?" : text;
}

std::string text(const PlaceDirective& place) {
  return "place " + to_string(place.filter) + " " + to_string(place.ranks) +
         " stream=" + place.stream;
}

// Each axis along which the place does not extend.
void claim(const PlaceDirective& place, const Provenance& from, Claims& claims) {
  for (const auto& [axis, size] : claims.mesh.axes) {
    if (axis != "ep" && size > 1 && !claims.ranks.extends(place.ranks, axis)) {
      claims.add(Claim::Kind::axis, axis, from);
    }
  }
}

}  // namespace

template <>
const Descriptor<PlaceDirective>& descriptor() {
  static const Descriptor<PlaceDirective> place{
      .kind = {.op = "place",
               .phase = DirectivePhase::place,
               .keys = {filter_key("filter!"),
                        key_of("ranks!", DirectiveKey::Form::ranks,
                               "a list of ranks, or mesh coordinates: `{ pp = 0 }` is all ranks of "
                               "that coordinate"),
                        plain_key("stream", Key::Type::text, "the compute stream")},
               .read =
                   [](DirectiveTable& table, Directive& into) {
                     PlaceDirective what{table.filter(), table.ranks()};
                     what.stream = table.text("stream", what.stream);
                     into.what = std::move(what);
                   },
               .complete = complete,
               .distinguishes = Distinguishes::regions,
               .key = key,
               .mark = mark},
      .text = text,
      .apply = apply,
      .claim = claim};
  return place;
}

}  // namespace piper
