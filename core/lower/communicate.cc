#include "core/lower/communicate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/lower/list_schedule.h"

namespace piper {
namespace {

class Lowering {
 public:
  Lowering(Expanded expanded, const ModelGraph& model)
      : dag_(std::move(expanded.dag)),
        nodes_(std::move(expanded.nodes)),
        flows_(std::move(expanded.flows)),
        model_(model) {}

  Expected<Dag> run(const std::string& cost_model) {
    PIPER_TRY(order_compute(cost_model));
    add_messages();
    add_inputs_and_counts();
    if (dag_.trains()) {
      add_reductions();
      add_norms_and_updates();
    }
    add_loss_reports();
    for (const std::vector<NodeId>& chain : order_) {
      for (std::size_t i = 1; i < chain.size(); ++i) {
        dag_.add_edge(chain[i - 1], chain[i]);
      }
    }
    return std::move(dag_);
  }

 private:
  static constexpr std::uint16_t kCompute = 0;

  std::uint32_t programs() const { return static_cast<std::uint32_t>(dag_.programs.size()); }

  // User order first (edges already), then critical path, as if messages were free.
  Status order_compute(const std::string& cost_model) {
    std::vector<Edge> crossing;
    for (const Flow& flow : flows_) {
      for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
        crossing.push_back({source(flow, m), target(flow, m)});
      }
    }
    PIPER_ASSIGN(Timeline timeline,
                 list_schedule(dag_, model_, crossing, make_costs(dag_, cost_model)));
    position_.resize(dag_.nodes.size());
    for (std::vector<std::vector<NodeId>>& streams : timeline.order) {
      order_.push_back(std::move(streams[kCompute]));
      for (std::uint32_t i = 0; i < order_.back().size(); ++i) {
        position_[index(order_.back()[i])] = i;
      }
    }
    return {};
  }

  NodeId source(const Flow& flow, std::uint32_t m) const {
    return ChunkNodes::at(flow.gradient ? nodes_[index(flow.consumer)].backward
                                        : nodes_[index(flow.producer)].forward,
                          m);
  }
  NodeId target(const Flow& flow, std::uint32_t m) const {
    return ChunkNodes::at(flow.gradient ? nodes_[index(flow.producer)].backward
                                        : nodes_[index(flow.consumer)].forward,
                          m);
  }

  std::uint16_t stream(std::uint32_t program, const std::string& name, Stream::Kind kind) {
    std::vector<LogicalStream>& streams = dag_.programs[program].streams;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (streams[s].name == name) {
        return static_cast<std::uint16_t>(s);
      }
    }
    streams.push_back({name, kind});
    return static_cast<std::uint16_t>(streams.size() - 1);
  }

  // One communicator and one stream for each directed pair of places.
  CommId channel(std::uint32_t from, std::uint32_t to) {
    const auto [entry, is_new] = channels_.try_emplace(
        {from, to}, CommId{static_cast<std::uint32_t>(dag_.communicators.size())});
    if (is_new) {
      Communicator channel;
      channel.kind = Communicator::Kind::point_to_point;
      channel.stream = std::to_string(from) + ">" + std::to_string(to);
      channel.from = from;
      channel.to = to;
      dag_.communicators.push_back(std::move(channel));
    }
    return entry->second;
  }

  CommId collective(const std::vector<std::uint32_t>& programs_in, const std::string& stream_name) {
    Communicator comm;
    comm.stream = stream_name;
    for (const std::uint32_t p : programs_in) {
      comm.ranks.insert(comm.ranks.end(), dag_.programs[p].ranks.begin(),
                        dag_.programs[p].ranks.end());
    }
    std::sort(comm.ranks.begin(), comm.ranks.end());
    for (std::uint32_t c = 0; c < dag_.communicators.size(); ++c) {
      const Communicator& other = dag_.communicators[c];
      if (other.kind == comm.kind && other.stream == comm.stream && other.ranks == comm.ranks) {
        return CommId{c};
      }
    }
    dag_.communicators.push_back(std::move(comm));
    return CommId{static_cast<std::uint32_t>(dag_.communicators.size() - 1)};
  }

  // A receive serves every chunk of its place that reads the value; gradients are sent for each
  // consumer apart.
  void add_messages() {
    std::map<std::pair<ValueId, std::uint32_t>, NodeId>
        received;  // activation and program -> first receive
    for (const Flow& flow : flows_) {
      const std::uint32_t from = dag_.node(source(flow, 0)).program;
      const std::uint32_t to = dag_.node(target(flow, 0)).program;
      if (!flow.gradient) {
        if (const auto known = received.find({flow.value, to}); known != received.end()) {
          for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
            dag_.add_edge(NodeId{index(known->second) + 2 * m}, target(flow, m));
          }
          continue;
        }
      }
      Node send, recv;
      send.op = Op::send;
      recv.op = Op::recv;
      send.program = static_cast<std::uint16_t>(from);
      recv.program = static_cast<std::uint16_t>(to);
      send.communicator = recv.communicator = channel(from, to);
      const std::string& name = dag_.communicators[index(send.communicator)].stream;
      send.stream = stream(from, "send " + name, Stream::Kind::communication);
      recv.stream = stream(to, "recv " + name, Stream::Kind::communication);
      send.value = recv.value = flow.value;
      send.chunk = recv.chunk = flow.gradient ? flow.consumer : none<ChunkId>();
      send.origin = recv.origin = dag_.programs[to].origin;
      for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
        const auto next = static_cast<std::uint32_t>(dag_.nodes.size());
        send.microbatch = recv.microbatch = m;
        send.peer = NodeId{next + 1};
        recv.peer = NodeId{next};
        dag_.add(send);
        dag_.add(recv);
        if (m == 0 && !flow.gradient) {
          received[{flow.value, to}] = NodeId{next + 1};
        }
        dag_.add_edge(source(flow, m), NodeId{next});
        dag_.add_edge(NodeId{next + 1}, target(flow, m));
        const std::uint32_t reader = position_[index(target(flow, m))];
        if (reader > kReceiveDistance) {
          dag_.add_edge(order_[to][reader - 1 - kReceiveDistance], NodeId{next + 1});
        }
      }
    }
  }

  // Adds one node of a collective for each of `programs_in`, linked in a ring. Returns the first;
  // the others follow.
  NodeId add_collective(Node node, const std::vector<std::uint32_t>& programs_in,
                        const std::string& stream_name, Stream::Kind kind) {
    node.communicator = collective(programs_in, stream_name);
    const auto first = static_cast<std::uint32_t>(dag_.nodes.size());
    const auto members = static_cast<std::uint32_t>(programs_in.size());
    for (std::uint32_t i = 0; i < members; ++i) {
      node.program = static_cast<std::uint16_t>(programs_in[i]);
      node.stream = stream(programs_in[i], stream_name, kind);
      node.peer = NodeId{first + (i + 1) % members};
      dag_.add(node);
    }
    return NodeId{first};
  }

  std::vector<std::uint32_t> all_programs() const {
    std::vector<std::uint32_t> all(programs());
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  void add_inputs_and_counts() {
    std::vector<NodeId> inputs(programs(), none<NodeId>());
    for (std::uint32_t p = 0; p < programs(); ++p) {
      for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
        const Chunk& chunk = dag_.chunks[c];
        const bool reads = std::any_of(chunk.inputs.begin(), chunk.inputs.end(),
                                       [&](ValueId v) { return model_.value(v).is_input(); });
        if (chunk.program != p || !(reads || chunk.has_loss)) {
          continue;
        }
        if (!valid(inputs[p])) {
          Node node;
          node.op = Op::input;
          node.program = static_cast<std::uint16_t>(p);
          node.stream = stream(p, "input", Stream::Kind::host);
          inputs[p] = dag_.add(node);
          dag_.nodes.back().peer = inputs[p];
        }
        for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
          dag_.add_edge(inputs[p], ChunkNodes::at(nodes_[c].forward, m));
        }
      }
    }
    std::vector<std::uint32_t> with_loss;
    for (const Chunk& chunk : dag_.chunks) {
      if (chunk.has_loss) {
        with_loss.push_back(chunk.program);
      }
    }
    Node count;
    count.op = Op::token_count;
    const NodeId first = add_collective(count, with_loss, "scalar", Stream::Kind::communication);
    for (std::uint32_t i = 0; i < with_loss.size(); ++i) {
      const NodeId node{index(first) + i};
      dag_.add_edge(inputs[with_loss[i]], node);
      for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
        const ChunkNodes& chunk = nodes_[c];
        if (dag_.chunks[c].has_loss && dag_.chunks[c].program == with_loss[i] &&
            valid(chunk.backward)) {
          for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
            dag_.add_edge(node, ChunkNodes::at(chunk.backward, m));
          }
        }
      }
    }
  }

  // The last computation of `program` that adds to the gradient of `bucket`.
  NodeId last_gradient(std::uint32_t program, BucketId bucket) const {
    NodeId last = none<NodeId>();
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      const Chunk& chunk = dag_.chunks[c];
      const NodeId pass = valid(nodes_[c].weight) ? nodes_[c].weight : nodes_[c].backward;
      const bool touches =
          std::find(chunk.buckets.begin(), chunk.buckets.end(), bucket) != chunk.buckets.end();
      if (chunk.program != program || !touches || !valid(pass)) {
        continue;
      }
      for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
        const NodeId node = ChunkNodes::at(pass, m);
        if (!valid(last) || position_[index(node)] > position_[index(last)]) {
          last = node;
        }
      }
    }
    return last;
  }

  // Each bucket's gradient over all its homes, once a step, whatever the reason that it has
  // several.
  void add_reductions() {
    for (std::uint32_t b = 0; b < dag_.buckets.size(); ++b) {
      const Bucket& bucket = dag_.buckets[b];
      std::size_t ranks = 0;
      for (const std::uint32_t home : bucket.homes) {
        ranks += dag_.programs[home].ranks.size();
      }
      NodeId reduction = none<NodeId>();
      if (!bucket.frozen && ranks > 1) {
        Node node;
        node.op = Op::all_reduce;
        node.bucket = BucketId{b};
        node.origin = dag_.programs[bucket.homes.front()].origin;
        reduction =
            add_collective(node, bucket.homes, dag_.programs[bucket.homes.front()].reduce_stream,
                           Stream::Kind::communication);
      }
      for (std::uint32_t i = 0; i < bucket.homes.size(); ++i) {
        NodeId ready = last_gradient(bucket.homes[i], BucketId{b});
        if (valid(reduction)) {
          const NodeId member{index(reduction) + i};
          if (valid(ready)) {
            dag_.add_edge(ready, member);
          }
          ready = member;
        }
        gradient_ready_[{bucket.homes[i], BucketId{b}}] = ready;
      }
    }
  }

  void add_norms_and_updates() {
    Node norm;
    norm.op = Op::grad_norm;
    const NodeId first =
        add_collective(norm, all_programs(), "scalar", Stream::Kind::communication);
    for (std::uint32_t p = 0; p < programs(); ++p) {
      const NodeId member{index(first) + p};
      for (const BucketId bucket : dag_.programs[p].buckets) {
        if (const NodeId ready = gradient_ready_[{p, bucket}]; valid(ready)) {
          dag_.add_edge(ready, member);
        }
      }
      for (const BucketId bucket : dag_.programs[p].buckets) {
        if (dag_.bucket(bucket).frozen) {
          continue;
        }
        Node update;
        update.op = Op::update;
        update.program = static_cast<std::uint16_t>(p);
        update.bucket = bucket;
        update.origin = dag_.programs[p].origin;
        const NodeId node = dag_.add(update);
        dag_.nodes.back().peer = node;
        dag_.add_edge(member, node);
        order_[p].push_back(node);
      }
    }
  }

  void add_loss_reports() {
    Node report;
    report.op = Op::loss_report;
    const NodeId first = add_collective(report, all_programs(), "compute", Stream::Kind::compute);
    for (std::uint32_t p = 0; p < programs(); ++p) {
      order_[p].push_back(NodeId{index(first) + p});
    }
  }

  Dag dag_;
  std::vector<ChunkNodes> nodes_;
  std::vector<Flow> flows_;
  const ModelGraph& model_;
  std::vector<std::vector<NodeId>> order_;  // by program: its compute stream
  std::vector<std::uint32_t> position_;     // by NodeId of compute: where in it
  std::map<std::pair<std::uint32_t, std::uint32_t>, CommId> channels_;
  std::map<std::pair<std::uint32_t, BucketId>, NodeId> gradient_ready_;
};

}  // namespace

Expected<Dag> communicate(Expanded expanded, const ModelGraph& model,
                          const std::string& cost_model) {
  return Lowering(std::move(expanded), model).run(cost_model);
}

}  // namespace piper
