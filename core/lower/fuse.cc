#include "core/lower/fuse.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace piper {
namespace {

// Which values have something to differentiate, and lead to the loss.
std::vector<bool> find_gradients(const ModelGraph& model) {
  std::vector<bool> differentiable(model.values.size()), leads_to_loss(model.values.size());
  for (const Region& region : model.regions) {
    bool any = std::any_of(region.parameters.begin(), region.parameters.end(), [&](ParameterId p) {
      return !model.parameter(p).frozen && is_floating(model.parameter(p).dtype);
    });
    for (const ValueId input : region.inputs) {
      any = any || differentiable[index(input)];
    }
    for (const ValueId output : region.outputs) {
      differentiable[index(output)] = any && is_floating(model.value(output).dtype);
    }
  }
  leads_to_loss[index(model.loss)] = true;
  for (auto region = model.regions.rbegin(); region != model.regions.rend(); ++region) {
    const bool any = std::any_of(region->outputs.begin(), region->outputs.end(),
                                 [&](ValueId output) { return leads_to_loss[index(output)]; });
    for (const ValueId input : region->inputs) {
      leads_to_loss[index(input)] = leads_to_loss[index(input)] || any;
    }
  }
  for (std::size_t v = 0; v < differentiable.size(); ++v) {
    differentiable[v] = differentiable[v] && leads_to_loss[v];
  }
  return differentiable;
}

class Fuser {
 public:
  Fuser(const Annotated& annotated, const Config& config, Plan::Kind kind)
      : annotated_(annotated), model_(annotated.model), config_(config) {
    dag_.kind = kind;
    dag_.world = annotated.world;
    dag_.microbatches = annotated.microbatches;
    dag_.global_rows = annotated.global_rows;
    dag_.origins = annotated.origins;
    dag_.wants_gradient = find_gradients(model_);
  }

  Expected<Dag> run() {
    make_programs();
    make_chunks();
    fill_chunks();
    PIPER_TRY(check_group_sizes());
    make_buckets();
    return std::move(dag_);
  }

 private:
  void make_programs() {
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      const Annotated::Placement& place = *annotated_.placement[r];
      std::uint32_t p = 0;
      while (p < dag_.programs.size() && dag_.programs[p].ranks != place.ranks.ranks) {
        ++p;
      }
      if (p == dag_.programs.size()) {
        dag_.programs.push_back({place.ranks.ranks,
                                 {{"compute", Stream::Kind::compute}},
                                 {},
                                 place.origin,
                                 annotated_.replication[r]->reduce_stream});
      }
      program_of_.push_back(p);
    }
  }

  std::vector<Tag> distinguishing_tags(RegionId region) const {
    std::vector<Tag> tags;
    for (const Tag& tag : model_.region(region).tags) {
      if (index(tag.name) < annotated_.distinguishing.size() &&
          annotated_.distinguishing[index(tag.name)]) {
        tags.push_back(tag);
      }
    }
    std::sort(tags.begin(), tags.end(),
              [](const Tag& a, const Tag& b) { return index(a.name) < index(b.name); });
    return tags;
  }

  bool same_kind(RegionId a, RegionId b) const {
    return program_of_[index(a)] == program_of_[index(b)] &&
           annotated_.split_backward[index(a)] == annotated_.split_backward[index(b)] &&
           distinguishing_tags(a) == distinguishing_tags(b);
  }

  // The one chunk that makes everything `region` reads, if the region may join it: no consumer of
  // that chunk outside it would then have to wait for more than before.
  ChunkId chunk_to_join(RegionId region, const std::vector<std::vector<RegionId>>& readers) const {
    ChunkId only = none<ChunkId>();
    for (const ValueId input : model_.region(region).inputs) {
      if (model_.value(input).is_input()) {
        continue;
      }
      const ChunkId chunk = chunk_of_[index(model_.value(input).producer)];
      if (valid(only) && chunk != only) {
        return none<ChunkId>();
      }
      only = chunk;
    }
    if (!valid(only) || !same_kind(dag_.chunk(only).regions.front(), region)) {
      return none<ChunkId>();
    }
    for (const RegionId member : dag_.chunk(only).regions) {
      for (const ValueId output : model_.region(member).outputs) {
        for (const RegionId reader : readers[index(output)]) {
          if (!same_kind(reader, region)) {
            return none<ChunkId>();
          }
        }
      }
    }
    return only;
  }

  void make_chunks() {
    std::vector<std::vector<RegionId>> readers(model_.values.size());
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      for (const ValueId input : model_.regions[r].inputs) {
        readers[index(input)].push_back(RegionId{r});
      }
    }
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      ChunkId chunk = chunk_to_join(RegionId{r}, readers);
      if (!valid(chunk)) {
        chunk = ChunkId{static_cast<std::uint32_t>(dag_.chunks.size())};
        dag_.chunks.emplace_back();
        dag_.chunks.back().program = program_of_[r];
        dag_.chunks.back().tags = model_.regions[r].tags;
        dag_.chunk_split.push_back(annotated_.split_backward[r]);
      }
      dag_.chunks[index(chunk)].regions.push_back(RegionId{r});
      chunk_of_.push_back(chunk);
    }
  }

  void fill_chunks() {
    dag_.producer.assign(model_.values.size(), none<ChunkId>());
    dag_.consumers.resize(model_.values.size());
    for (std::uint32_t v = 0; v < model_.values.size(); ++v) {
      if (!model_.values[v].is_input()) {
        dag_.producer[v] = chunk_of_[index(model_.values[v].producer)];
      }
    }
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      Chunk& chunk = dag_.chunks[c];
      chunk.has_backward = false;
      for (const RegionId id : chunk.regions) {
        const Region& region = model_.region(id);
        std::erase_if(chunk.tags,
                      [&](const Tag& tag) { return region.tag(tag.name) != tag.index; });
        chunk.flops = chunk.flops + region.flops;
        chunk.saved_bytes = chunk.saved_bytes + region.saved_bytes;
        for (const ValueId input : region.inputs) {
          const bool outside = dag_.producer[index(input)] != ChunkId{c};
          if (outside &&
              std::find(chunk.inputs.begin(), chunk.inputs.end(), input) == chunk.inputs.end()) {
            chunk.inputs.push_back(input);
            dag_.consumers[index(input)].push_back(ChunkId{c});
          }
        }
        for (const ValueId output : region.outputs) {
          chunk.has_loss = chunk.has_loss || output == model_.loss;
          chunk.has_backward = chunk.has_backward || dag_.wants_gradient[index(output)];
        }
      }
    }
    for (std::uint32_t v = 0; v < model_.values.size(); ++v) {
      if (!dag_.consumers[v].empty() && valid(dag_.producer[v])) {
        dag_.chunks[index(dag_.producer[v])].outputs.push_back(ValueId{v});
      }
    }
  }

  Status check_group_sizes() const {
    for (const Chunk& chunk : dag_.chunks) {
      for (const ValueId input : chunk.inputs) {
        if (!valid(dag_.producer[index(input)])) {
          continue;
        }
        const DagProgram& from = dag_.programs[dag_.chunk(dag_.producer[index(input)]).program];
        const DagProgram& to = dag_.programs[chunk.program];
        if (from.ranks.size() != to.ranks.size()) {
          Diagnostic sizes =
              error("place.group_size",
                    describe(model_, chunk.regions.front()) + " is placed on " +
                        std::to_string(to.ranks.size()) + " ranks and reads a value made on " +
                        std::to_string(from.ranks.size()) + "; expected groups of equal size",
                    dag_.origins[to.origin].where);
          sizes.note("the producer's place", dag_.origins[from.origin].where);
          return fail(std::move(sizes));
        }
      }
    }
    return {};
  }

  // A bucket is uniform in who uses it (so in its homes), dtype, optimizer group and frozen flag.
  void make_buckets() {
    std::vector<std::vector<ChunkId>> users(model_.parameters.size());
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      for (const RegionId region : dag_.chunks[c].regions) {
        for (const ParameterId parameter : model_.region(region).parameters) {
          std::vector<ChunkId>& list = users[index(parameter)];
          if (list.empty() || list.back() != ChunkId{c}) {
            list.push_back(ChunkId{c});
          }
        }
      }
    }
    using Key = std::tuple<std::vector<ChunkId>, DType, std::uint32_t, bool>;
    std::map<Key, BucketId> known;
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
      const Parameter& parameter = model_.parameters[p];
      const std::uint32_t group = optimizer_group(config_, parameter.name);
      const auto next = BucketId{static_cast<std::uint32_t>(dag_.buckets.size())};
      const auto [entry, is_new] =
          known.try_emplace(Key{users[p], parameter.dtype, group, parameter.frozen}, next);
      if (is_new) {
        Bucket bucket;
        bucket.dtype = parameter.dtype;
        bucket.frozen = parameter.frozen;
        bucket.optimizer_group = group;
        for (const ChunkId chunk : users[p]) {
          bucket.homes.push_back(dag_.chunk(chunk).program);
          dag_.chunks[index(chunk)].buckets.push_back(next);
        }
        if (users[p].empty()) {
          bucket.homes.push_back(
              0);  // never used: its gradient is zero, and it lives on the first place
        }
        std::sort(bucket.homes.begin(), bucket.homes.end());
        bucket.homes.erase(std::unique(bucket.homes.begin(), bucket.homes.end()),
                           bucket.homes.end());
        bucket.tied = bucket.homes.size() > 1;
        dag_.buckets.push_back(std::move(bucket));
      }
      Bucket& bucket = dag_.buckets[index(entry->second)];
      bucket.parameters.push_back(ParameterId{p});
      bucket.elements += parameter.elements();
    }
    for (std::uint32_t b = 0; b < dag_.buckets.size(); ++b) {
      for (const std::uint32_t home : dag_.buckets[b].homes) {
        dag_.programs[home].buckets.push_back(BucketId{b});
      }
    }
  }

  const Annotated& annotated_;
  const ModelGraph& model_;
  const Config& config_;
  Dag dag_;
  std::vector<std::uint32_t> program_of_;  // by RegionId
  std::vector<ChunkId> chunk_of_;          // by RegionId
};

}  // namespace

Expected<Dag> fuse(const Annotated& annotated, const Config& config, Plan::Kind kind) {
  return Fuser(annotated, config, kind).run();
}

bool computes_gradient(const Dag& dag, ValueId value, ChunkId chunk) {
  return dag.trains() && valid(dag.producer[index(value)]) && dag.wants_gradient[index(value)] &&
         dag.chunk(chunk).has_backward;
}

}  // namespace piper
