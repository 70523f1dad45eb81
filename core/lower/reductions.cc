#include "core/lower/reductions.h"

#include <algorithm>
#include <tuple>

#include "core/lower/expand.h"
#include "core/lower/streams.h"

namespace piper {
namespace {

constexpr std::uint32_t kNever = 0xffffffff;

bool uses_parameters(Op op) {
  return op == Op::forward || op == Op::recompute || op == Op::backward || op == Op::backward_input;
}
bool makes_gradients(Op op) {
  return op == Op::backward || op == Op::backward_weight;
}

// A chain of one bucket: the k-th on its program.
struct ChainOfUses {
  BucketId bucket;
  std::uint32_t k = 0;
  NodeId first = none<NodeId>(), last = none<NodeId>();
  std::uint32_t position = 0;  // of the first in the order
};

std::vector<std::vector<std::uint32_t>> ranks_of(const Dag& dag, std::uint32_t program,
                                                 BucketId bucket) {
  const std::vector<std::uint32_t>& homes = dag.bucket(bucket).homes;
  const auto home =
      static_cast<std::size_t>(std::find(homes.begin(), homes.end(), program) - homes.begin());
  std::vector<std::vector<std::uint32_t>> groups = dag.policies[index(bucket)].groups[home];
  for (std::vector<std::uint32_t>& group : groups) {
    for (std::uint32_t& member : group) {
      member = dag.programs[program].ranks[member];
    }
  }
  return groups;
}

// Ranks that hold the same part of a bucket, over all its homes.
std::vector<std::vector<std::uint32_t>> same_part(const Dag& dag, BucketId id) {
  const Bucket& bucket = dag.bucket(id);
  const BucketPolicy& policy = dag.policies[index(id)];
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>>
      parts;  // expert block, shard
  for (std::size_t h = 0; h < bucket.homes.size(); ++h) {
    const std::vector<std::uint32_t>& ranks = dag.programs[bucket.homes[h]].ranks;
    for (const std::vector<std::uint32_t>& group : policy.groups[h]) {
      for (std::uint32_t i = 0; i < group.size(); ++i) {
        const std::uint32_t expert = policy.expert_of.empty() ? 0 : policy.expert_of[h][group[i]];
        parts[{expert, bucket.zero > 0 ? i : 0}].push_back(ranks[group[i]]);
      }
    }
  }
  std::vector<std::vector<std::uint32_t>> groups;
  for (auto& [key, ranks] : parts) {
    std::sort(ranks.begin(), ranks.end());
    groups.push_back(std::move(ranks));
  }
  return groups;
}

// The chains of one program.
class Chains {
 public:
  Chains(Dag& dag, std::uint32_t program, const std::vector<NodeId>& order)
      : dag_(dag), program_(program), order_(order), open_(dag.buckets.size()) {}

  void run(std::vector<NodeId>& last_gradient) {
    find(last_gradient);
    add_gathers();
    if (dag_.trains()) {
      add_reduce_scatters(last_gradient);
    }
  }

 private:
  struct Open {
    std::uint32_t run = kNever, last_step = kNever;  // of uses of any kind
    std::uint32_t parameter_run = kNever, gradient_run = kNever;
    std::uint32_t parameters = 0, gradients = 0;  // chains so far
    std::size_t parameter_chain = 0, gradient_chain = 0;
  };

  void find(std::vector<NodeId>& last_gradient) {
    std::uint32_t step = 0;  // computations that touch any bucket
    for (std::uint32_t position = 0; position < order_.size(); ++position) {
      const NodeId id = order_[position];
      const Node& node = dag_.node(id);
      const std::vector<BucketId>& buckets = dag_.chunk(node.chunk).buckets;
      if (buckets.empty()) {
        continue;
      }
      ++step;
      for (std::size_t j = 0; j < buckets.size(); ++j) {
        const Bucket& bucket = dag_.bucket(buckets[j]);
        const bool gradient = makes_gradients(node.op) && !bucket.frozen;
        if (gradient) {
          last_gradient[index(buckets[j])] = id;
        }
        if (bucket.zero == 0) {
          continue;
        }
        Open& open = open_[index(buckets[j])];
        if (open.last_step == kNever || open.last_step + 1 != step) {
          open.run = open.run == kNever ? 0 : open.run + 1;
        }
        open.last_step = step;
        const std::size_t entry = dag_.chains.first[index(id)] + j;
        if (bucket.zero == 3 && uses_parameters(node.op)) {
          const std::uint32_t run = bucket.keep_gathered == Span::step ? 0 : open.run;
          if (open.parameter_run != run) {
            open.parameter_run = run;
            open.parameter_chain = gathers_.size();
            gathers_.push_back({buckets[j], open.parameters++, id, id, position});
          }
          gathers_[open.parameter_chain].last = id;
          dag_.chains.parameter[entry] = gathers_[open.parameter_chain].k;
        }
        if (gradient && bucket.zero > 0) {
          const bool step_long = bucket.reduce == Span::step || bucket.zero == 1;
          const std::uint32_t run = step_long ? 0 : open.run;
          if (open.gradient_run != run) {
            open.gradient_run = run;
            open.gradient_chain = reductions_.size();
            reductions_.push_back({buckets[j], open.gradients++, id, id, position});
          }
          reductions_[open.gradient_chain].last = id;
          dag_.chains.gradient[entry] = reductions_[open.gradient_chain].k;
        }
      }
    }
  }

  Node collective_node(Op op, BucketId bucket, std::uint32_t k, const std::string& stream) {
    Node node;
    node.op = op;
    node.program = static_cast<std::uint16_t>(program_);
    node.bucket = bucket;
    node.microbatch = k;
    node.communicator = collective(dag_, ranks_of(dag_, program_, bucket), stream);
    node.stream = stream_of(dag_, program_, stream, Stream::Kind::communication);
    node.origin = dag_.policies[index(bucket)].origin;
    return node;
  }

  // A gather may start when the chain `prefetch` before its own does: after the computation before
  // that. Never after the end of a chain, which may lie after its own start.
  void add_gathers() {
    for (std::size_t i = 0; i < gathers_.size(); ++i) {
      const ChainOfUses& chain = gathers_[i];
      const BucketPolicy& policy = dag_.policies[index(chain.bucket)];
      const NodeId gather =
          dag_.add(collective_node(Op::all_gather, chain.bucket, chain.k, policy.gather_stream));
      dag_.add_edge(gather, chain.first);
      if (i >= policy.prefetch) {
        if (const std::uint32_t at = gathers_[i - policy.prefetch].position; at > 0) {
          dag_.add_edge(order_[at - 1], gather);
        }
      }
    }
  }

  void add_reduce_scatters(std::vector<NodeId>& last_gradient) {
    for (const ChainOfUses& chain : reductions_) {
      const BucketPolicy& policy = dag_.policies[index(chain.bucket)];
      const NodeId reduction = dag_.add(
          collective_node(Op::reduce_scatter, chain.bucket, chain.k, policy.reduce_stream));
      dag_.add_edge(chain.last, reduction);
      if (chain.k > 0) {  // all of a bucket add to one shard, and the last one stands for all
        dag_.add_edge(last_gradient[index(chain.bucket)], reduction);
      }
      last_gradient[index(chain.bucket)] = reduction;
    }
  }

  Dag& dag_;
  std::uint32_t program_;
  const std::vector<NodeId>& order_;
  std::vector<Open> open_;  // by BucketId
  std::vector<ChainOfUses> gathers_, reductions_;
};

void make_chain_table(Dag& dag) {
  const bool sharded = std::any_of(dag.buckets.begin(), dag.buckets.end(),
                                   [](const Bucket& b) { return b.zero > 0; });
  if (!sharded) {
    return;
  }
  std::uint32_t entries = 0;
  for (const Node& node : dag.nodes) {
    dag.chains.first.push_back(entries);
    const bool computes = uses_parameters(node.op) || makes_gradients(node.op);
    entries += computes ? static_cast<std::uint32_t>(dag.chunk(node.chunk).buckets.size()) : 0;
  }
  dag.chains.parameter.assign(entries, kNever);
  dag.chains.gradient.assign(entries, kNever);
}

}  // namespace

GradientsReady add_gathers_and_reductions(Dag& dag, const std::vector<std::vector<NodeId>>& order) {
  make_chain_table(dag);
  GradientsReady ready;
  for (std::uint32_t p = 0; p < dag.programs.size(); ++p) {
    std::vector<NodeId> last_gradient(dag.buckets.size(), none<NodeId>());
    Chains(dag, p, order[p]).run(last_gradient);
    for (const BucketId bucket : dag.programs[p].buckets) {
      if (valid(last_gradient[index(bucket)])) {
        ready[{p, bucket}] = last_gradient[index(bucket)];
      }
    }
  }
  if (!dag.trains()) {
    return {};
  }
  for (std::uint32_t b = 0; b < dag.buckets.size(); ++b) {
    const Bucket& bucket = dag.buckets[b];
    if (bucket.frozen) {
      continue;
    }
    const std::vector<std::vector<std::uint32_t>> groups = same_part(dag, BucketId{b});
    if (groups.front().size() == 1) {
      continue;
    }
    Node node;
    node.op = Op::all_reduce;
    node.bucket = BucketId{b};
    node.origin = dag.policies[b].origin;
    const NodeId first = add_collective(dag, node, bucket.homes,
                                        collective(dag, groups, dag.policies[b].reduce_stream));
    for (std::uint32_t i = 0; i < bucket.homes.size(); ++i) {
      const std::pair<std::uint32_t, BucketId> key{bucket.homes[i], BucketId{b}};
      if (const auto before = ready.find(key); before != ready.end()) {
        dag.add_edge(before->second, offset(first, i));
      }
      ready[key] = offset(first, i);
    }
  }
  return ready;
}

void add_gather_after_update(Dag& dag, std::uint32_t program, BucketId id, NodeId update) {
  const Bucket& bucket = dag.bucket(id);
  if (bucket.zero != 1 && bucket.zero != 2) {
    return;
  }
  const BucketPolicy& policy = dag.policies[index(id)];
  Node node;
  node.op = Op::all_gather;
  node.program = static_cast<std::uint16_t>(program);
  node.bucket = id;
  node.communicator = collective(dag, ranks_of(dag, program, id), policy.gather_stream);
  node.stream = stream_of(dag, program, policy.gather_stream, Stream::Kind::communication);
  node.origin = policy.origin;
  dag.add_edge(update, dag.add(node));
}

}  // namespace piper
