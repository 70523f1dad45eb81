#include "core/lower/communicate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/lower/list_schedule.h"
#include "core/lower/reductions.h"
#include "core/lower/streams.h"

namespace piper {
namespace {

class Lowering {
 public:
  Lowering(Expanded expanded, const ModelGraph& model, const CommConfig& comm)
      : dag_(std::move(expanded.dag)),
        nodes_(std::move(expanded.nodes)),
        flows_(std::move(expanded.flows)),
        order_(std::move(expanded.total_order)),
        orders_(std::move(expanded.orders)),
        model_(model),
        receive_distance_(static_cast<std::uint32_t>(comm.receive_distance)) {}

  Expected<Dag> run(const CostModel& cost_model) {
    PIPER_TRY(order_compute(cost_model));
    add_messages();
    add_inputs_and_counts();
    const GradientsReady ready = add_gathers_and_reductions(dag_, order_);
    if (dag_.trains()) {
      add_norms_and_updates(ready);
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

  // User order first, then critical path, as if messages were free.
  Status order_compute(const CostModel& cost_model) {
    const bool given =
        std::none_of(order_.begin(), order_.end(), [](const auto& order) { return order.empty(); });
    if (!given) {
      std::vector<Edge> crossing;
      for (const Flow& flow : flows_) {
        for_each(flow, [&](std::uint32_t, NodeId source, NodeId target) {
          crossing.push_back({source, target});
        });
      }
      CostScope scope = scope_of(dag_);
      scope.fold_recomputation = true;
      PIPER_ASSIGN(const Costs costs, make_costs(cost_model, scope, model_));
      std::optional<Timeline> timeline = list_schedule(dag_, crossing, costs);
      if (!timeline) {
        add_messages();  // the cycle goes through them
        return fail(order_cycle(dag_, orders_, model_));
      }
      for (std::uint32_t p = 0; p < programs(); ++p) {
        order_[p] = std::move(timeline->order[p][kCompute]);
      }
    }
    if (dag_.trains()) {
      add_recomputations();
    }
    position_.resize(dag_.nodes.size());
    for (const std::vector<NodeId>& order : order_) {
      for (std::uint32_t i = 0; i < order.size(); ++i) {
        position_[index(order[i])] = i;
      }
    }
    return {};
  }

  // Each right before the backward that it is for: it waits for no gradient, so it can run while
  // that arrives.
  void add_recomputations() {
    for (std::vector<NodeId>& order : order_) {
      std::vector<NodeId> all;
      for (const NodeId id : order) {
        Node node = dag_.node(id);
        if ((node.op == Op::backward || node.op == Op::backward_input) &&
            dag_.chunk(node.chunk).recompute) {
          node.op = Op::recompute;
          all.push_back(dag_.add(node));
          dag_.add_edge(all.back(), id);
        }
        all.push_back(id);
      }
      order = std::move(all);
    }
  }

  // Each micro-batch of a flow with the computations at its ends.
  template <typename F>
  void for_each(const Flow& flow, F&& f) const {
    const Chunk &maker = dag_.chunk(flow.maker), &user = dag_.chunk(flow.user);
    const NodeId first =
        flow.gradient ? nodes_[index(flow.user)].backward : nodes_[index(flow.maker)].forward;
    const NodeId second =
        flow.gradient ? nodes_[index(flow.maker)].backward : nodes_[index(flow.user)].forward;
    for (const std::uint32_t m : shared_microbatches(dag_, maker, user)) {
      const std::uint32_t a = position_of(maker, m), b = position_of(user, m);
      f(m, offset(first, flow.gradient ? b : a), offset(second, flow.gradient ? a : b));
    }
  }

  // A receive serves every chunk of its place that reads the value; gradients are sent for each
  // user apart.
  void add_messages() {
    using Key = std::pair<std::pair<ValueId, ChunkId>, std::uint32_t>;  // value and maker, program
    std::map<Key, std::map<std::uint32_t, NodeId>> received;            // by micro-batch
    std::vector<std::size_t> arrivals(model_.values.size(), 0);
    for (const Flow& flow : flows_) {
      arrivals[index(flow.value)] += flow.gradient ? 0 : 1;
    }
    for (const Flow& flow : flows_) {
      const std::uint32_t maker = dag_.chunk(flow.maker).program,
                          user = dag_.chunk(flow.user).program;
      const std::uint32_t from = flow.gradient ? user : maker, to = flow.gradient ? maker : user;
      Node send, recv;
      send.op = Op::send;
      recv.op = Op::recv;
      send.program = static_cast<std::uint16_t>(from);
      recv.program = static_cast<std::uint16_t>(to);
      send.communicator = recv.communicator = channel(dag_, from, to);
      const std::string name = dag_.communicators[index(send.communicator)].stream;
      send.stream = stream_of(dag_, from, "send " + name, Stream::Kind::communication);
      recv.stream = stream_of(dag_, to, "recv " + name, Stream::Kind::communication);
      send.value = recv.value = flow.value;
      send.chunk = recv.chunk = flow.gradient ? flow.user : none<ChunkId>();
      send.origin = recv.origin = dag_.programs[to].origin;
      // Only a value with several readers can already be there.
      std::map<std::uint32_t, NodeId>* known = !flow.gradient && arrivals[index(flow.value)] > 1
                                                   ? &received[{{flow.value, flow.maker}, to}]
                                                   : nullptr;
      for_each(flow, [&](std::uint32_t m, NodeId source, NodeId target) {
        if (known != nullptr) {
          if (const auto there = known->find(m); there != known->end()) {
            dag_.add_edge(there->second, target);
            return;
          }
        }
        send.microbatch = recv.microbatch = m;
        send.peer = offset(dag_.next(), 1);
        recv.peer = dag_.next();
        const NodeId send_id = dag_.add(send), recv_id = dag_.add(recv);
        if (known != nullptr) {
          (*known)[m] = recv_id;
        }
        dag_.add_edge(source, send_id);
        dag_.add_edge(recv_id, target);
        if (position_.empty()) {
          return;  // there is no order in which it could be posted
        }
        if (const std::uint32_t reader = position_[index(target)]; reader > receive_distance_) {
          dag_.add_edge(order_[to][reader - 1 - receive_distance_], recv_id);
        }
      });
    }
  }

  std::vector<std::uint32_t> all_programs() const {
    std::vector<std::uint32_t> all(programs());
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  // The communicator of all ranks of some programs, in ascending order.
  CommId everyone(const std::vector<std::uint32_t>& some, const std::string& stream) {
    std::vector<std::uint32_t> ranks;
    for (const std::uint32_t p : some) {
      ranks.insert(ranks.end(), dag_.programs[p].ranks.begin(), dag_.programs[p].ranks.end());
    }
    std::sort(ranks.begin(), ranks.end());
    return collective(dag_, {ranks}, stream);
  }

  void add_edges_to(NodeId from, NodeId first, const Chunk& chunk) {
    const std::uint32_t count = runs(dag_, chunk);
    for (std::uint32_t i = 0; i < count; ++i) {
      dag_.add_edge(from, offset(first, i));
    }
  }

  void add_inputs_and_counts() {
    std::vector<NodeId> inputs(programs(), none<NodeId>());
    std::vector<std::uint32_t> with_loss;
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      const Chunk& chunk = dag_.chunks[c];
      const bool reads = std::any_of(chunk.inputs.begin(), chunk.inputs.end(),
                                     [&](ValueId v) { return model_.value(v).is_input(); });
      if (chunk.has_loss) {
        with_loss.push_back(chunk.program);
      }
      if (!reads && !chunk.has_loss) {
        continue;
      }
      if (!valid(inputs[chunk.program])) {
        Node node;
        node.op = Op::input;
        node.program = static_cast<std::uint16_t>(chunk.program);
        node.stream = stream_of(dag_, chunk.program, "input", Stream::Kind::host);
        inputs[chunk.program] = dag_.add(node);
      }
      add_edges_to(inputs[chunk.program], nodes_[c].forward, chunk);
    }
    std::sort(with_loss.begin(), with_loss.end());
    with_loss.erase(std::unique(with_loss.begin(), with_loss.end()), with_loss.end());
    counts_.assign(programs(), none<NodeId>());
    Node count;
    count.op = Op::token_count;
    const NodeId first = add_collective(dag_, count, with_loss, everyone(with_loss, "scalar"));
    for (std::uint32_t i = 0; i < with_loss.size(); ++i) {
      dag_.add_edge(inputs[with_loss[i]], offset(first, i));
      for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
        const Chunk& chunk = dag_.chunks[c];
        if (!chunk.has_loss || chunk.program != with_loss[i]) {
          continue;
        }
        if (valid(nodes_[c].backward)) {
          add_edges_to(offset(first, i), nodes_[c].backward, chunk);
        } else {
          counts_[chunk.program] = offset(first, i);
        }
      }
    }
  }

  void add_norms_and_updates(const GradientsReady& ready) {
    Node norm;
    norm.op = Op::grad_norm;
    const NodeId first =
        add_collective(dag_, norm, all_programs(), everyone(all_programs(), "scalar"));
    for (std::uint32_t p = 0; p < programs(); ++p) {
      const NodeId member = offset(first, p);
      for (const BucketId bucket : dag_.programs[p].buckets) {
        if (const auto node = ready.find({p, bucket}); node != ready.end()) {
          dag_.add_edge(node->second, member);
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
        update.origin = dag_.policies[index(bucket)].origin;
        const NodeId node = dag_.add(update);
        dag_.add_edge(member, node);
        order_[p].push_back(node);
        add_gather_after_update(dag_, p, bucket, node);
      }
    }
  }

  void add_loss_reports() {
    Node report;
    report.op = Op::loss_report;
    const NodeId first = add_collective(dag_, report, all_programs(),
                                        everyone(all_programs(), "compute"), Stream::Kind::compute);
    for (std::uint32_t p = 0; p < programs(); ++p) {
      if (valid(counts_[p])) {
        dag_.add_edge(counts_[p], offset(first, p));
      }
      order_[p].push_back(offset(first, p));
    }
  }

  Dag dag_;
  std::vector<ChunkNodes> nodes_;
  std::vector<Flow> flows_;
  std::vector<std::vector<NodeId>> order_;  // by program: its compute stream
  const std::vector<OrderLine> orders_;     // what was said of it
  const ModelGraph& model_;
  const std::uint32_t receive_distance_;
  // By program: its count of tokens, where no backward comes after it but only the report.
  std::vector<NodeId> counts_;
  std::vector<std::uint32_t> position_;  // by NodeId of compute: where in it
};

}  // namespace

Expected<Dag> communicate(Expanded expanded, const ModelGraph& model, const CostModel& cost_model,
                          const CommConfig& comm) {
  return Lowering(std::move(expanded), model, comm).run(cost_model);
}

}  // namespace piper
