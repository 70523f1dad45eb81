#include "core/lower/fuse.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/lower/buckets.h"
#include "core/plan/chunk_memory.h"

namespace piper {
namespace {

// A fused run of regions, before it is copied to each of its places.
using Group = std::vector<RegionId>;

class Fuser {
 public:
  Fuser(const Annotated& annotated, const Config& config, Plan::Kind kind)
      : annotated_(annotated), model_(annotated.model), config_(config) {
    dag_.kind = kind;
    dag_.world = annotated.world;
    dag_.microbatches = annotated.microbatches;
    dag_.global_rows = annotated.global_rows;
    dag_.origins = annotated.origins;
    dag_.wants_gradient = values_with_gradient(model_);
  }

  Expected<Dag> run() {
    block_ = bucket_blocks(annotated_);
    make_groups();
    cut_groups();
    make_programs();
    make_chunks();
    connect();
    PIPER_TRY(check_edges());
    PIPER_TRY(make_buckets(dag_, annotated_, config_, whole_));
    return std::move(dag_);
  }

 private:
  // What distinguishes regions that are never fused, as numbers.
  std::vector<std::uint32_t> kind_of(RegionId id) const {
    std::vector<std::uint32_t> kind{block_[index(id)]};
    for (const DirectiveKind* directive : directive_kinds()) {
      if (directive->distinguishes == Distinguishes::regions) {
        directive->key(annotated_, id, kind);
        kind.push_back(kNone);
      }
    }
    return kind;
  }

  // Whether a directive cuts what is fused between these.
  bool are_pieces(RegionId a, RegionId b) const {
    std::vector<std::uint32_t> of_a, of_b;
    for (const DirectiveKind* directive : directive_kinds()) {
      if (directive->distinguishes == Distinguishes::pieces) {
        directive->key(annotated_, a, of_a);
        directive->key(annotated_, b, of_b);
      }
    }
    return of_a != of_b;
  }

  std::vector<std::uint32_t> split_microbatches(RegionId id, const Chunk& chunk) const {
    const std::vector<std::uint32_t>& split = annotated_.columns.of<BackwardSplit>(id).microbatches;
    if (chunk.microbatches.empty()) {
      return split;
    }
    std::vector<std::uint32_t> own;
    std::set_intersection(split.begin(), split.end(), chunk.microbatches.begin(),
                          chunk.microbatches.end(), std::back_inserter(own));
    return own;
  }

  // The one group that makes everything `region` reads, if the region may join it: no reader of
  // that group outside it would then have to wait for more than before.
  std::uint32_t group_to_join(RegionId region) const {
    std::uint32_t only = kNone;
    for (const ValueId input : model_.region(region).inputs) {
      if (model_.value(input).is_input()) {
        continue;
      }
      const std::uint32_t group = group_of_[index(model_.value(input).producer)];
      if (only != kNone && group != only) {
        return kNone;
      }
      only = group;
    }
    if (only == kNone || kind_[index(groups_[only].front())] != kind_[index(region)] ||
        has_strangers_[only]) {
      return kNone;
    }
    return only;
  }

  void make_groups() {
    std::map<std::vector<std::uint32_t>, std::uint32_t> kinds;
    std::vector<std::vector<std::uint32_t>> readers(model_.values.size());  // kinds of regions
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      kind_.push_back(
          kinds.try_emplace(kind_of(RegionId{r}), static_cast<std::uint32_t>(kinds.size()))
              .first->second);
      for (const ValueId input : model_.regions[r].inputs) {
        readers[index(input)].push_back(kind_[r]);
      }
    }
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      std::uint32_t group = group_to_join(RegionId{r});
      if (group == kNone) {
        group = static_cast<std::uint32_t>(groups_.size());
        groups_.emplace_back();
        has_strangers_.push_back(false);
      }
      groups_[group].push_back(RegionId{r});
      group_of_.push_back(group);
      for (const ValueId output : model_.regions[r].outputs) {
        for (const std::uint32_t reader : readers[index(output)]) {
          has_strangers_[group] = has_strangers_[group] || reader != kind_[r];
        }
      }
    }
  }

  void cut_groups() {
    std::vector<Group> pieces;
    std::vector<std::uint32_t> last_piece(model_.parameters.size(), kNone);  // that uses it
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      for (const RegionId id : groups_[g]) {
        const std::vector<ParameterId>& parameters = model_.region(id).parameters;
        const auto open = static_cast<std::uint32_t>(pieces.size()) - 1;
        if (id == groups_[g].front() || are_pieces(pieces.back().back(), id) ||
            std::any_of(parameters.begin(), parameters.end(),
                        [&](ParameterId p) { return last_piece[index(p)] == open; })) {
          pieces.emplace_back();
          fused_.push_back(g);
        }
        pieces.back().push_back(id);
        group_of_[index(id)] = static_cast<std::uint32_t>(pieces.size()) - 1;
        for (const ParameterId p : parameters) {
          last_piece[index(p)] = group_of_[index(id)];
        }
      }
    }
    groups_ = std::move(pieces);
  }

  void make_programs() {
    std::map<std::vector<std::uint32_t>, std::uint32_t> known;
    for (const std::vector<Annotated::Placement>& places : annotated_.placements) {
      for (const Annotated::Placement& place : places) {
        const auto next = static_cast<std::uint32_t>(dag_.programs.size());
        if (known.try_emplace(place.ranks.ranks, next).second) {
          dag_.programs.push_back(
              {place.ranks.ranks, {{"compute", Stream::Kind::compute}}, {}, place.origin});
        }
      }
    }
    program_of_ = std::move(known);
  }

  // Group by group, and place by place of each: producers before consumers.
  void make_chunks() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, ChunkId> wholes;  // by fused run, program
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      const Region& first = model_.region(group.front());
      std::map<std::uint32_t, std::vector<std::uint32_t>> places;  // program -> micro-batches
      for (const Annotated::Placement& place : annotated_.placements[index(group.front())]) {
        std::vector<std::uint32_t>& list = places[program_of_.at(place.ranks.ranks)];
        list.insert(list.end(), place.microbatches.begin(), place.microbatches.end());
      }
      for (auto& [program, microbatches] : places) {
        Chunk chunk;
        chunk.regions = group;
        chunk.program = program;
        chunk.tags = first.tags;
        chunk.has_backward = false;
        std::sort(microbatches.begin(), microbatches.end());
        if (microbatches.size() < dag_.microbatches) {
          chunk.microbatches = std::move(microbatches);
        }
        fill(chunk);
        chunk.recompute =
            chunk.has_backward &&
            annotated_.columns.of<Recomputed>(group.front()).unit != Recomputed::kNever;
        dag_.chunk_split.push_back(split_microbatches(group.front(), chunk));
        dag_.chunk_sharding.push_back(annotated_.sharding[index(group.front())]);
        chunk.experts = dag_.chunk_sharding.back() != Annotated::kNothing;
        if (chunk.experts) {
          const Family& family = annotated_.shardings[dag_.chunk_sharding.back()].what.family;
          const auto groups = groups_in(family, {dag_.programs[program].ranks});
          chunk.expert_parts = static_cast<std::uint32_t>((*groups)[0].size());
        }
        const auto own = ChunkId{static_cast<std::uint32_t>(dag_.chunks.size())};
        whole_.push_back(wholes.try_emplace({fused_[g], program}, own).first->second);
        dag_.chunks.push_back(std::move(chunk));
      }
    }
  }

  void fill(Chunk& chunk) const {
    for (const RegionId id : chunk.regions) {
      const Region& region = model_.region(id);
      std::erase_if(chunk.tags, [&](const Tag& tag) { return region.tag(tag.name) != tag.index; });
      chunk.flops = chunk.flops + region.flops;
      for (const ValueId input : region.inputs) {
        const bool outside = model_.value(input).is_input() ||
                             group_of_[index(model_.value(input).producer)] != group_of_[index(id)];
        if (outside &&
            std::find(chunk.inputs.begin(), chunk.inputs.end(), input) == chunk.inputs.end()) {
          chunk.inputs.push_back(input);
        }
      }
      for (const ValueId output : region.outputs) {
        chunk.has_loss = chunk.has_loss || output == model_.loss;
        chunk.has_backward = chunk.has_backward || dag_.wants_gradient[index(output)];
      }
    }
  }

  void connect() {
    dag_.makers.resize(model_.values.size());
    dag_.uses.resize(model_.values.size());
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      for (std::uint32_t i = 0; i < dag_.chunks[c].inputs.size(); ++i) {
        dag_.uses[index(dag_.chunks[c].inputs[i])].push_back({ChunkId{c}, i});
      }
      for (const RegionId region : dag_.chunks[c].regions) {
        for (const ValueId output : model_.region(region).outputs) {
          dag_.makers[index(output)].push_back(ChunkId{c});
        }
      }
    }
    for (std::uint32_t v = 0; v < model_.values.size(); ++v) {
      for (const ChunkId maker : dag_.makers[v]) {
        if (!dag_.uses[v].empty()) {
          dag_.chunks[index(maker)].outputs.push_back(ValueId{v});
        }
      }
    }
    for (Chunk& chunk : dag_.chunks) {
      chunk.saved_bytes = saved_bytes(model_, chunk);
    }
  }

  // Neighbours are of equal size, and experts are entered and left on their own place.
  Status check_edges() const {
    for (std::uint32_t v = 0; v < model_.values.size(); ++v) {
      for (const Use& use : dag_.uses[v]) {
        const Chunk& user = dag_.chunk(use.chunk);
        if (dag_.makers[v].empty() && user.experts) {
          return fail(edge_error(use.chunk,
                                 "reads the input '" + model_.values[v].name + "' of the model"));
        }
        for (const ChunkId maker : dag_.makers[v]) {
          if (shared_microbatches(dag_, dag_.chunk(maker), user).empty()) {
            continue;
          }
          const DagProgram& from = dag_.programs[dag_.chunk(maker).program];
          const DagProgram& to = dag_.programs[user.program];
          if (from.ranks.size() != to.ranks.size()) {
            Diagnostic sizes =
                error("place.group_size",
                      describe(model_, user.regions.front()) + " is placed on " +
                          std::to_string(to.ranks.size()) + " ranks and reads a value made on " +
                          std::to_string(from.ranks.size()) + "; expected groups of equal size",
                      dag_.origins[to.origin].where);
            sizes.note("the producer's place", dag_.origins[from.origin].where);
            return fail(std::move(sizes));
          }
          const bool has_experts = dag_.chunk(maker).experts || user.experts;
          if (has_experts && dag_.chunk(maker).program != user.program) {
            return fail(edge_error(user.experts ? use.chunk : maker,
                                   "exchanges a value with another place"));
          }
          if (routes(dag_, maker, use.chunk) && dag_.chunk(maker).experts && user.experts) {
            return fail(edge_error(use.chunk, "reads a value that other experts make"));
          }
        }
      }
    }
    return {};
  }

  Diagnostic edge_error(ChunkId experts, const std::string& what) const {
    const Annotated::Sharding& sharding = annotated_.shardings[dag_.chunk_sharding[index(experts)]];
    const Provenance& from = annotated_.origins[sharding.origin];
    return error("shard.edge",
                 from.plugin + ": shard: " + describe(model_, dag_.chunk(experts).regions.front()) +
                     " " + what + "; expected experts between regions of their own place",
                 from.where);
  }

  static constexpr std::uint32_t kNone = 0xffffffff;

  const Annotated& annotated_;
  const ModelGraph& model_;
  const Config& config_;
  Dag dag_;
  std::vector<std::uint32_t> block_;     // by RegionId
  std::vector<std::uint32_t> kind_;      // by RegionId
  std::vector<std::uint32_t> group_of_;  // by RegionId
  std::vector<Group> groups_;
  std::vector<std::uint32_t> fused_;  // by group, once cut: what it is a piece of
  std::vector<ChunkId> whole_;        // by ChunkId: the first piece of what it is a piece of
  std::vector<bool> has_strangers_;   // by group: someone of another kind reads what it makes
  std::map<std::vector<std::uint32_t>, std::uint32_t> program_of_;
};

}  // namespace

Expected<Dag> fuse(const Annotated& annotated, const Config& config, Plan::Kind kind) {
  return Fuser(annotated, config, kind).run();
}

}  // namespace piper
