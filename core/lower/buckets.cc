#include "core/lower/buckets.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace piper {
namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;  // positions in a place's ranks

class Maker {
 public:
  Maker(Dag& dag, const Annotated& annotated, const Config& config,
        const std::vector<ChunkId>& whole)
      : dag_(dag), annotated_(annotated), model_(annotated.model), config_(config), whole_(whole) {}

  Status run() {
    find_users();
    using Key = std::tuple<std::vector<ChunkId>, DType, std::uint32_t, bool>;
    std::map<Key, BucketId> known;
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
      const Parameter& parameter = model_.parameters[p];
      const std::uint32_t group = optimizer_group(config_, parameter.name);
      const auto next = BucketId{static_cast<std::uint32_t>(dag_.buckets.size())};
      const auto [entry, is_new] =
          known.try_emplace(Key{users_[p], parameter.dtype, group, parameter.frozen}, next);
      if (is_new) {
        PIPER_TRY(open(ParameterId{p}, group));
      }
      Bucket& bucket = dag_.buckets[index(entry->second)];
      bucket.parameters.push_back(ParameterId{p});
      bucket.elements += parameter.elements();
      for (const ChunkId chunk : chunks_[p]) {
        add_bucket(dag_.chunks[index(chunk)], entry->second);
      }
    }
    for (std::uint32_t b = 0; b < dag_.buckets.size(); ++b) {
      PIPER_TRY(close(BucketId{b}));
    }
    return {};
  }

 private:
  static void add_bucket(Chunk& chunk, BucketId bucket) {
    const auto at = std::lower_bound(chunk.buckets.begin(), chunk.buckets.end(), bucket);
    if (at == chunk.buckets.end() || *at != bucket) {
      chunk.buckets.insert(at, bucket);
    }
  }

  void find_users() {
    users_.resize(model_.parameters.size());
    chunks_.resize(model_.parameters.size());
    first_uses_.resize(model_.parameters.size());
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      for (const RegionId region : dag_.chunks[c].regions) {
        const std::vector<ParameterId>& parameters = model_.region(region).parameters;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          std::vector<ChunkId>& list = users_[index(parameters[i])];
          if (list.empty()) {
            first_uses_[index(parameters[i])] = {region, i, parameters.size()};
          }
          if (std::find(list.begin(), list.end(), whole_[c]) == list.end()) {
            list.push_back(whole_[c]);
          }
          chunks_[index(parameters[i])].push_back(ChunkId{c});
        }
      }
    }
  }

  Status open(ParameterId first, std::uint32_t group) {
    const std::vector<ChunkId>& users = users_[index(first)];
    Bucket bucket;
    bucket.dtype = model_.parameter(first).dtype;
    bucket.frozen = model_.parameter(first).frozen;
    bucket.optimizer_group = group;
    for (const ChunkId chunk : users) {
      bucket.homes.push_back(dag_.chunk(chunk).program);
    }
    if (users.empty()) {
      bucket.homes.push_back(
          0);  // never used: its gradient is zero, and it lives on the first place
    }
    std::sort(bucket.homes.begin(), bucket.homes.end());
    bucket.homes.erase(std::unique(bucket.homes.begin(), bucket.homes.end()), bucket.homes.end());
    bucket.tied = bucket.homes.size() > 1;
    BucketPolicy policy;
    if (!users.empty()) {
      PIPER_TRY(take_policy(bucket, policy, users));
    }
    if (policy.groups.empty()) {
      for (const std::uint32_t home : bucket.homes) {
        policy.groups.push_back(*groups_in({}, {dag_.programs[home].ranks}));
      }
      bucket.shards = bucket.zero > 0 ? static_cast<std::uint32_t>(policy.groups[0][0].size()) : 1;
    }
    dag_.buckets.push_back(std::move(bucket));
    dag_.policies.push_back(std::move(policy));
    return {};
  }

  // What the users' replicate and shard directives say; tied users must agree.
  Status take_policy(Bucket& bucket, BucketPolicy& policy, const std::vector<ChunkId>& users) {
    const auto region_of = [&](ChunkId chunk) { return dag_.chunk(chunk).regions.front(); };
    const RegionId first = region_of(users.front());
    const Annotated::Replication& replication =
        annotated_.replications[annotated_.replication[index(first)]];
    const ReplicateDirective& what = replication.what;
    for (const ChunkId user : users) {
      const RegionId other = region_of(user);
      if (annotated_.replication[index(other)] != annotated_.replication[index(first)] ||
          annotated_.sharding[index(other)] != annotated_.sharding[index(first)]) {
        Diagnostic mixed =
            error("replicate.mixed",
                  describe(model_, first) + " and " + describe(model_, other) +
                      " share a parameter; expected them under one replicate directive",
                  dag_.origins[replication.origin].where);
        return fail(std::move(mixed));
      }
    }
    policy.reduce_stream = what.reduce_stream;
    policy.gather_stream = what.gather_stream;
    policy.prefetch = what.prefetch;
    policy.origin = replication.origin;
    bucket.zero = what.shard_params ? 3 : what.shard_grads ? 2 : what.shard_optimizer ? 1 : 0;
    bucket.keep_gathered = what.keep_gathered;
    bucket.reduce = what.reduce;
    const std::uint32_t sharding = annotated_.sharding[index(first)];
    for (const std::uint32_t home : bucket.homes) {
      const Ranks place{dag_.programs[home].ranks};
      std::optional<Groups> groups = groups_in(what.family, place);
      if (sharding != Annotated::kNothing) {
        const Annotated::Sharding& experts = annotated_.shardings[sharding];
        const Groups expert_groups = *groups_in(experts.what.family, place);
        bucket.expert_parts = static_cast<std::uint32_t>(expert_groups[0].size());
        std::vector<std::uint32_t>& part = policy.expert_of.emplace_back(place.ranks.size());
        for (const std::vector<std::uint32_t>& group : expert_groups) {
          for (std::uint32_t i = 0; i < group.size(); ++i) {
            part[group[i]] = i;
          }
        }
        groups = split_by_experts(*groups, expert_groups, what.family.groups.empty(), part);
        if (!groups) {
          return fail(error("shard.replicate",
                            "the groups over which " + describe(model_, first) +
                                " is replicated mix ranks that hold different experts",
                            dag_.origins[replication.origin].where));
        }
      }
      policy.groups.push_back(std::move(*groups));
      if (policy.groups.back()[0].size() != policy.groups[0][0].size() && bucket.zero > 0) {
        return fail(error("replicate.homes",
                          "the places of " + describe(model_, first) +
                              " have groups of different size, over which it cannot be sharded",
                          dag_.origins[replication.origin].where));
      }
    }
    bucket.shards = bucket.zero > 0 ? static_cast<std::uint32_t>(policy.groups[0][0].size()) : 1;
    return {};
  }

  // Ranks with the same experts: those at one position of every expert group.
  static std::optional<Groups> split_by_experts(const Groups& groups, const Groups& experts,
                                                bool whole_place,
                                                const std::vector<std::uint32_t>& part) {
    if (whole_place) {
      Groups same(experts[0].size());
      for (const std::vector<std::uint32_t>& group : experts) {
        for (std::size_t i = 0; i < group.size(); ++i) {
          same[i].push_back(group[i]);
        }
      }
      return same;
    }
    for (const std::vector<std::uint32_t>& group : groups) {
      for (const std::uint32_t member : group) {
        if (part[member] != part[group.front()]) {
          return std::nullopt;
        }
      }
    }
    return groups;
  }

  // Which of the equal blocks of its region's parameters a parameter is in.
  std::size_t block_of(ParameterId parameter, std::size_t parts) const {
    const FirstUse& use = first_uses_[index(parameter)];
    return use.position * parts / use.count;
  }

  // Block i of a bucket is block i of each of its regions' parameters, in that order.
  Status sort_into_blocks(BucketId id) {
    Bucket& bucket = dag_.buckets[index(id)];
    const std::size_t parts = bucket.expert_parts;
    std::vector<std::size_t> sizes(parts, 0);
    for (const ParameterId parameter : bucket.parameters) {
      ++sizes[block_of(parameter, parts)];
    }
    if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end()) {
      return fail(error("shard.parameters",
                        "expected a number of expert parameters that the expert group's " +
                            std::to_string(parts) + " ranks divide, got " +
                            std::to_string(bucket.parameters.size()),
                        dag_.origins[dag_.policies[index(id)].origin].where));
    }
    std::sort(bucket.parameters.begin(), bucket.parameters.end(),
              [&](ParameterId a, ParameterId b) {
                const auto key = [&](ParameterId p) {
                  const FirstUse& use = first_uses_[index(p)];
                  return std::tuple{block_of(p, parts), use.region, use.position};
                };
                return key(a) < key(b);
              });
    return {};
  }

  Status close(BucketId id) {
    Bucket& bucket = dag_.buckets[index(id)];
    if (bucket.expert_parts > 1) {
      PIPER_TRY(sort_into_blocks(id));
      const std::size_t block = bucket.parameters.size() / bucket.expert_parts;
      for (std::size_t i = block; i < bucket.parameters.size(); ++i) {
        const Parameter &one = model_.parameter(bucket.parameters[i]),
                        &first = model_.parameter(bucket.parameters[i - block]);
        if (one.shape != first.shape) {
          return fail(error("shard.parameters",
                            "expected blocks of " + std::to_string(block) +
                                " parameters of the same shapes, but '" + one.name +
                                "' differs from '" + first.name + "'",
                            dag_.origins[dag_.policies[index(id)].origin].where));
        }
      }
      bucket.elements /= bucket.expert_parts;
    }
    if (bucket.shards == 1 || bucket.elements == 0) {
      bucket.zero = 0, bucket.shards = 1;  // nothing to shard
    }
    for (const std::uint32_t home : bucket.homes) {
      dag_.programs[home].buckets.push_back(id);
    }
    return {};
  }

  Dag& dag_;
  const Annotated& annotated_;
  const ModelGraph& model_;
  const Config& config_;
  struct FirstUse {
    RegionId region = none<RegionId>();
    std::size_t position = 0, count = 1;  // among the region's parameters
  };
  const std::vector<ChunkId>& whole_;
  std::vector<std::vector<ChunkId>> users_;   // by ParameterId: the first chunks of what uses it
  std::vector<std::vector<ChunkId>> chunks_;  // by ParameterId: all that use it
  std::vector<FirstUse> first_uses_;          // by ParameterId
};

}  // namespace

std::vector<std::uint32_t> bucket_blocks(const Annotated& annotated) {
  const ModelGraph& model = annotated.model;
  std::vector<std::uint32_t> uses(model.parameters.size(), 0), block(model.regions.size(), 0);
  for (const Region& region : model.regions) {
    for (const ParameterId parameter : region.parameters) {
      ++uses[index(parameter)];
    }
  }
  std::uint32_t current = 0, last_replication = Annotated::kNothing;
  std::uint64_t bytes = 0;
  for (std::uint32_t r = 0; r < model.regions.size(); ++r) {
    const std::uint64_t limit = annotated.replications[annotated.replication[r]].what.bucket_bytes;
    if (limit == 0) {
      continue;
    }
    std::uint64_t own = 0;
    for (const ParameterId parameter : model.regions[r].parameters) {
      own += uses[index(parameter)] == 1
                 ? static_cast<std::uint64_t>(model.parameter(parameter).bytes())
                 : 0;
    }
    if (annotated.replication[r] != last_replication || (bytes > 0 && bytes + own > limit)) {
      ++current;
      bytes = 0;
    }
    last_replication = annotated.replication[r];
    bytes += own;
    block[r] = current;
  }
  return block;
}

Status make_buckets(Dag& dag, const Annotated& annotated, const Config& config,
                    const std::vector<ChunkId>& whole) {
  return Maker(dag, annotated, config, whole).run();
}

}  // namespace piper
