#include "core/cost/costs.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace piper {
namespace {

constexpr double kNanoseconds = 1e9;

// Of an optimizer: reads and writes parameter, gradient and two moments.
constexpr std::int64_t kTouched = 7;

// So many of them fit into a sum over any plan.
constexpr double kMostNanoseconds = 1e12;

std::uint64_t ticks(double nanoseconds) {
  return static_cast<std::uint64_t>(std::llround(std::clamp(nanoseconds, 1.0, kMostNanoseconds)));
}

}  // namespace

CostScope scope_of(const Plan& plan) {
  CostScope scope{plan.chunks, plan.buckets,      plan.communicators,
                  {},          plan.microbatches, plan.global_rows};
  for (const Program& program : plan.programs) {
    scope.ranks.emplace_back(program.ranks);
  }
  return scope;
}

class CostBuilder {
 public:
  CostBuilder(const CostModel& model, const CostScope& scope, const ModelGraph& graph)
      : model_(model), scope_(scope), graph_(graph) {}

  Expected<Costs> build() {
    costs_.unit_ = model_.kind == CostModel::Kind::unit;
    if (scope_.fold_recomputation) {
      for (const Chunk& chunk : scope_.chunks) {
        costs_.folded_.push_back(chunk.recompute);
      }
    }
    if (costs_.unit_) {
      return std::move(costs_);
    }
    for (const Chunk& chunk : scope_.chunks) {
      PIPER_TRY(add_chunk(chunk));
    }
    std::int64_t rows = 1;
    for (const auto& ranks : scope_.ranks) {
      rows = std::max(rows, rows_on(ranks.size()));
    }
    for (const Value& value : graph_.values) {
      costs_.value_bytes_.push_back(value.bytes().at(rows));
    }
    for (const Chunk& chunk : scope_.chunks) {
      std::int64_t bytes = 0;
      for (const ValueId input : chunk.inputs) {
        bytes += costs_.value_bytes_[index(input)];
      }
      costs_.routed_bytes_.push_back(bytes);
    }
    for (const Bucket& bucket : scope_.buckets) {
      costs_.bucket_bytes_.push_back(bucket.bytes());
      costs_.gradient_bytes_.push_back(bucket.gradient_bytes());
      costs_.updates_.push_back(ticks(
          at_memory(bucket.shard_elements() * size_of(gradient_dtype(bucket.dtype)) * kTouched)));
    }
    for (const Communicator& communicator : scope_.communicators) {
      add_channel(communicator);
    }
    return std::move(costs_);
  }

 private:
  // Rows of the largest micro-batch on a place of so many ranks.
  std::int64_t rows_on(std::size_t ranks) const {
    const auto parts = static_cast<std::int64_t>(ranks) * scope_.microbatches;
    return (scope_.global_rows + parts - 1) / parts;
  }

  double at_memory(std::int64_t bytes) const {
    return static_cast<double>(bytes) * 8 / model_.machine.memory_gbps;
  }

  double roofline(RegionId id, std::int64_t rows) const {
    const Region& region = graph_.region(id);
    std::int64_t bytes = 0;
    for (const ParameterId parameter : region.parameters) {
      bytes += graph_.parameter(parameter).bytes();
    }
    for (const auto* values : {&region.inputs, &region.outputs}) {
      for (const ValueId value : *values) {
        bytes += graph_.value(value).bytes().at(rows);
      }
    }
    const double compute =
        static_cast<double>(region.flops.at(rows)) / (model_.machine.tflops * 1e12) * kNanoseconds;
    return std::max(compute, at_memory(bytes));
  }

  Status add_chunk(const Chunk& chunk) {
    Costs::Pass cost;
    const std::int64_t rows = rows_on(scope_.ranks[chunk.program].size());
    if (model_.kind == CostModel::Kind::analytical) {
      double forward = 0;
      for (const RegionId region : chunk.regions) {
        forward += roofline(region, rows);
      }
      cost = {ticks(forward), ticks(2 * forward), ticks(forward), ticks(forward)};
    } else {
      PIPER_ASSIGN(const double forward, measured(chunk, rows, Op::forward));
      cost.forward = ticks(forward);
      const bool whole = has(Op::backward);
      if (whole) {
        PIPER_ASSIGN(const double backward, measured(chunk, rows, Op::backward));
        cost.backward = ticks(backward);
        cost.input = cost.weight = ticks(backward / 2);
      }
      if (!whole || has(Op::backward_input)) {
        PIPER_ASSIGN(const double input, measured(chunk, rows, Op::backward_input));
        PIPER_ASSIGN(const double weight, measured(chunk, rows, Op::backward_weight));
        cost.input = ticks(input);
        cost.weight = ticks(weight);
        cost.backward = whole ? cost.backward : ticks(input + weight);
      }
    }
    costs_.chunks_.push_back(cost);
    return {};
  }

  bool has(Op op) const {
    return std::any_of(model_.measured.begin(), model_.measured.end(),
                       [op](const MeasuredCost& cost) { return cost.op == op; });
  }

  // What was measured of several regions together is theirs by their share of the operations, so
  // that a chunk that is cut otherwise has a cost too.
  Expected<double> measured(const Chunk& chunk, std::int64_t rows, Op op) const {
    double nanoseconds = 0;
    for (const RegionId id : chunk.regions) {
      const std::uint32_t r = index(id);
      const auto entry = std::find_if(model_.measured.begin(), model_.measured.end(),
                                      [&](const MeasuredCost& cost) {
                                        return cost.op == op && cost.first <= r && r <= cost.last;
                                      });
      if (entry == model_.measured.end()) {
        return fail(error("cost.missing",
                          "expected a [[cost]] with op = \"" + std::string(to_string(op)) +
                              "\" for region " + std::to_string(r) + ", got none",
                          Location{model_.measured_file, 0, 0}));
      }
      double total = 0;
      for (std::uint32_t i = entry->first; i <= entry->last && i < graph_.regions.size(); ++i) {
        total += weight(RegionId{i}, rows);
      }
      nanoseconds += entry->us * 1e3 * weight(id, rows) / total;
    }
    return nanoseconds;
  }

  double weight(RegionId id, std::int64_t rows) const {
    return static_cast<double>(graph_.region(id).flops.at(rows)) + 1;
  }

  void add_channel(const Communicator& communicator) {
    const std::uint32_t each = model_.machine.ranks_per_node;
    bool crosses = false;
    Costs::Channel channel;
    if (communicator.kind == Communicator::Kind::point_to_point) {
      const auto &from = scope_.ranks[communicator.from], &to = scope_.ranks[communicator.to];
      for (std::size_t i = 0; i < from.size(); ++i) {
        crosses = crosses || from[i] / each != to[i] / each;
      }
    } else {
      const auto& ranks = communicator.ranks;
      const std::size_t size = communicator.group_size > 0 ? communicator.group_size : ranks.size();
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        crosses = crosses || ranks[i] / each != ranks[i - i % size] / each;
      }
      channel.members = static_cast<std::uint32_t>(size);
    }
    const Link& link = crosses ? model_.machine.network : model_.machine.node;
    channel.latency = link.latency_us * 1e3;
    channel.per_byte = 8 / link.gbps;
    costs_.channels_.push_back(channel);
  }

  const CostModel& model_;
  const CostScope& scope_;
  const ModelGraph& graph_;
  Costs costs_;
};

std::uint64_t Costs::message(std::int64_t bytes, CommId comm) const {
  const Channel& channel = channels_[index(comm)];
  return ticks(channel.latency + channel.per_byte * static_cast<double>(bytes));
}

// A ring: in each of d - 1 steps of a round, every member passes on a d-th.
std::uint64_t Costs::ring(std::int64_t bytes, CommId comm, double rounds) const {
  const Channel& channel = channels_[index(comm)];
  const double d = channel.members;
  return ticks(rounds * (d - 1) *
               (channel.latency + channel.per_byte * static_cast<double>(bytes) / d));
}

std::uint64_t Costs::of(Op op, ChunkId chunk, ValueId value, BucketId bucket, CommId comm) const {
  const bool recomputes =
      (op == Op::backward || op == Op::backward_input) && !folded_.empty() && folded_[index(chunk)];
  return alone(op, chunk, value, bucket, comm) +
         (recomputes ? alone(Op::recompute, chunk, value, bucket, comm) : 0);
}

std::uint64_t Costs::alone(Op op, ChunkId chunk, ValueId value, BucketId bucket,
                           CommId comm) const {
  const OpTraits& of = traits(op);
  if (unit_) {
    return of.units;
  }
  switch (of.cost) {
    case Cost::forward:
      return chunks_[index(chunk)].forward;
    case Cost::backward:
      return chunks_[index(chunk)].backward;
    case Cost::backward_input:
      return chunks_[index(chunk)].input;
    case Cost::backward_weight:
      return chunks_[index(chunk)].weight;
    case Cost::update:
      return updates_[index(bucket)];
    case Cost::message:
      return message(value_bytes_[index(value)], comm);
    case Cost::ring:
      return ring(ring_bytes(of.moves, chunk, bucket), comm, of.rounds);
    case Cost::fixed:
      break;
  }
  return of.units;
}

std::int64_t Costs::ring_bytes(Moves moves, ChunkId chunk, BucketId bucket) const {
  switch (moves) {
    case Moves::parameters:
      return bucket_bytes_[index(bucket)];
    case Moves::gradients:
    case Moves::shard:
      return gradient_bytes_[index(bucket)];
    case Moves::routed:
      return routed_bytes_[index(chunk)];
    case Moves::value:
    case Moves::scalar:
    case Moves::nothing:
      break;
  }
  return 0;
}

Expected<Costs> make_costs(const CostModel& model, const CostScope& scope,
                           const ModelGraph& graph) {
  return CostBuilder(model, scope, graph).build();
}

Expected<std::vector<std::int64_t>> region_costs(const CostModel& model, const ModelGraph& graph,
                                                 std::int64_t rows) {
  std::vector<std::int64_t> result;
  if (model.kind == CostModel::Kind::unit) {
    for (const Region& region : graph.regions) {
      result.push_back(region.flops.at(rows));
    }
    return result;
  }
  std::vector<Chunk> chunks(graph.regions.size());
  for (std::uint32_t r = 0; r < chunks.size(); ++r) {
    chunks[r].regions = {RegionId{r}};
  }
  const std::uint32_t rank = 0;
  const CostScope scope{chunks, {}, {}, {{&rank, 1}}, 1, rows};
  PIPER_ASSIGN(const Costs costs, make_costs(model, scope, graph));
  for (std::uint32_t r = 0; r < chunks.size(); ++r) {
    const auto cost = [&](Op op) {
      return costs.of(op, ChunkId{r}, none<ValueId>(), none<BucketId>(), none<CommId>());
    };
    result.push_back(static_cast<std::int64_t>(cost(Op::forward) + cost(Op::backward)));
  }
  return result;
}

}  // namespace piper
