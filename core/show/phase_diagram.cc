// Diagrams of what the planner has after each phase.
#include <algorithm>
#include <map>
#include <set>

#include "core/directives/annotated.h"
#include "core/lower/dag_text.h"
#include "core/lower/edge_values.h"
#include "core/lower/expand.h"
#include "core/plan/node_name.h"
#include "core/plan/text.h"
#include "core/show/diagram.h"

namespace piper {
namespace {

constexpr std::size_t kMostNodes = 5000, kMostLabels = 150;
constexpr Colour kModel{0x99, 0xdd, 0xff};

std::string joined(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < 8; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text + (ranks.size() > 8 ? ", …" : "");
}

std::string place_name(const std::vector<std::uint32_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + joined(ranks);
}

bool has_rank(const std::vector<std::uint32_t>& ranks, std::int64_t rank) {
  return rank < 0 ||
         std::find(ranks.begin(), ranks.end(), static_cast<std::uint32_t>(rank)) != ranks.end();
}

Colour fill_of(Op op) {
  const Paint paint = traits(op).paint;
  return paint == Paint::message ? Colour{0xdd, 0xdd, 0xdd} : colour_of(paint);
}

class Drawing {
 public:
  explicit Drawing(const ModelGraph& model, std::int64_t rank) : model_(model), rank_(rank) {}

  // Regions, as lanes their places; inputs of the model stand with their first reader.
  Diagram draw(const Annotated& annotated) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> lanes;
    std::vector<std::uint32_t> node_of_region, node_of_value(model_.values.size(), kNone);
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      const Region& region = model_.regions[r];
      const auto& places = annotated.placements[r];
      const std::vector<std::uint32_t> ranks =
          places.empty() ? std::vector<std::uint32_t>{} : places.front().ranks.ranks;
      if (!has_rank(ranks, rank_)) {
        node_of_region.push_back(kNone);
        continue;
      }
      const auto lane =
          lanes.try_emplace(ranks, static_cast<std::uint32_t>(out_.clusters.size())).first->second;
      if (lane == out_.clusters.size()) {
        out_.clusters.push_back(place_name(ranks));
      }
      for (const ValueId input : region.inputs) {
        if (model_.value(input).is_input() && node_of_value[index(input)] == kNone) {
          node_of_value[index(input)] =
              add({model_.value(input).name, "", false, colour_of(Paint::input), lane, 0});
        }
      }
      node_of_region.push_back(
          add({region_label(region, r), describe(model_, RegionId{r}), true, kModel, lane, 0}));
      for (const ValueId output : region.outputs) {
        node_of_value[index(output)] = node_of_region.back();
      }
    }
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      for (const ValueId input : model_.regions[r].inputs) {
        connect(node_of_value[index(input)], node_of_region[r], false,
                "%" + std::to_string(index(input)));
      }
    }
    return finish("model");
  }

  Diagram draw(const Expanded& expanded) {
    add_dag(expanded.dag);
    for (const Flow& flow : expanded.flows) {
      const Chunk &maker = expanded.dag.chunk(flow.maker), &user = expanded.dag.chunk(flow.user);
      const ChunkNodes &first = expanded.nodes[index(flow.maker)],
                       &second = expanded.nodes[index(flow.user)];
      for (const std::uint32_t m : shared_microbatches(expanded.dag, maker, user)) {
        const std::uint32_t a = position_of(maker, m), b = position_of(user, m);
        const NodeId from = flow.gradient ? offset(second.backward, b) : offset(first.forward, a);
        const NodeId to = flow.gradient ? offset(first.backward, a) : offset(second.forward, b);
        connect(index_[index(from)], index_[index(to)], false,
                (flow.gradient ? "grad %" : "%") + std::to_string(index(flow.value)));
      }
    }
    return finish("after expand");
  }

  Diagram draw(const Dag& dag) {
    add_dag(dag);
    for (std::uint32_t n = 0; n < dag.nodes.size(); ++n) {
      if (traits(dag.nodes[n].op).direction == Direction::out) {
        connect(index_[n], index_[index(dag.nodes[n].peer)], false,
                valid(dag.nodes[n].chunk) ? "grad" : "");
      }
    }
    return finish("after communicate");
  }

  // Streams are dashed, waits and messages solid.
  Diagram draw(const Plan& plan) {
    const NodeNames names(plan, model_);
    std::map<NodeId, std::uint32_t> node_of;
    std::vector<std::vector<std::uint32_t>> node_of_task(plan.programs.size());
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      const Program& program = plan.programs[p];
      if (!has_rank(program.ranks, rank_)) {
        continue;
      }
      const auto lane = static_cast<std::uint32_t>(out_.clusters.size());
      out_.clusters.push_back(place_name(program.ranks) + " (program " + std::to_string(p) + ")");
      for (const Task& task : program.tasks) {
        const std::string& stream = program.streams[index(task.stream)].name;
        node_of_task[p].push_back(add(task_node(names.of(plan, p, task), task.op, stream, lane)));
        node_of[task.node] = node_of_task[p].back();
      }
    }
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      const Program& program = plan.programs[p];
      for (std::uint32_t t = 0; t < node_of_task[p].size(); ++t) {
        const Task& task = program.tasks[t];
        if (t > program.streams[index(task.stream)].tasks.begin) {
          connect(node_of_task[p][t - 1], node_of_task[p][t], true, "");
        }
        for (const Wait& wait : program.waits_of(task)) {
          if (!wait.previous) {
            connect(node_of_task[p][index(wait.task)], node_of_task[p][t], false, "");
          }
        }
        if (const auto peer = node_of.find(task.peer);
            traits(task.op).direction == Direction::out && peer != node_of.end()) {
          connect(node_of_task[p][t], peer->second, false, "");
        }
      }
    }
    return finish("plan");
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::uint32_t add(DiagramNode node) {
    out_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(out_.nodes.size() - 1);
  }

  void connect(std::uint32_t from, std::uint32_t to, bool temporal, std::string label) {
    if (from == kNone || to == kNone) {
      return;
    }
    out_.edges.push_back({from, to, temporal, std::move(label)});
  }

  // `layer 2 attention`, without tags that only number.
  std::string region_label(const Region& region, std::uint32_t r) const {
    std::string label;
    for (const Tag& tag : region.tags) {
      label += (label.empty() ? "" : " ") + model_.tag_names[index(tag.name)] + "=" +
               std::to_string(tag.index);
    }
    return label.empty() ? "region " + std::to_string(r) : label;
  }

  static DiagramNode task_node(const std::string& name, Op op, const std::string& stream,
                               std::uint32_t lane) {
    return {name.substr(0, name.rfind('@')),
            name + " on " + stream,
            computes(op),
            fill_of(op),
            lane,
            0};
  }

  void add_dag(const Dag& dag) {
    const NodeNames names(dag.chunks, model_.tag_names);
    std::vector<std::uint32_t> lane(dag.programs.size(), kNone);
    for (std::uint32_t p = 0; p < dag.programs.size(); ++p) {
      if (has_rank(dag.programs[p].ranks, rank_)) {
        lane[p] = static_cast<std::uint32_t>(out_.clusters.size());
        out_.clusters.push_back(place_name(dag.programs[p].ranks) + " (program " +
                                std::to_string(p) + ")");
      }
    }
    for (std::uint32_t n = 0; n < dag.nodes.size(); ++n) {
      const Node& node = dag.nodes[n];
      if (lane[node.program] == kNone) {
        index_.push_back(kNone);
        continue;
      }
      const DagProgram& program = dag.programs[node.program];
      const std::string stream =
          node.stream < program.streams.size() ? program.streams[node.stream].name : "compute";
      index_.push_back(
          add(task_node(names.of(identity(node)), node.op, stream, lane[node.program])));
    }
    const EdgeValues values(dag, model_);
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (const Edge& edge : dag.edges) {
      if (!seen.insert({index(edge.from), index(edge.to)}).second) {
        continue;
      }
      std::string label;
      const std::vector<Content> what = values.of(edge);
      for (const Content& item : what) {
        label += (label.empty() ? "" : ", ") + edge_label(item);
      }
      connect(index_[index(edge.from)], index_[index(edge.to)], what.empty(), label);
    }
  }

  Diagram finish(const char* what) {
    if (out_.edges.size() > kMostLabels) {
      for (DiagramEdge& edge : out_.edges) {
        edge.label.clear();
      }
    }
    out_.title = model_.name + ": " + what;
    set_levels(out_);
    return std::move(out_);
  }

  const ModelGraph& model_;
  std::int64_t rank_;
  std::vector<std::uint32_t> index_;  // by NodeId of a DAG: its node in the diagram
  Diagram out_;
};

std::size_t nodes_of(const Annotated* annotated) {
  return annotated->model.regions.size();
}
std::size_t nodes_of(const Expanded* expanded) {
  return expanded->dag.nodes.size();
}
std::size_t nodes_of(const Dag* dag) {
  return dag->nodes.size();
}
std::size_t nodes_of(const Plan* plan) {
  std::size_t tasks = 0;
  for (const Program& program : plan->programs) {
    tasks += program.tasks.size();
  }
  return tasks;
}

}  // namespace

Expected<Diagram> diagram(const Phase& phase, std::int64_t rank) {
  const std::size_t nodes =
      std::visit([](const auto* value) { return nodes_of(value); }, phase.value);
  if (nodes > kMostNodes) {
    return fail(error("show.too_large", "expected at most " + std::to_string(kMostNodes) +
                                            " nodes in a picture, got " + std::to_string(nodes) +
                                            ": fewer micro-batches show the same"));
  }
  return std::visit([&](const auto* value) { return Drawing(phase.model, rank).draw(*value); },
                    phase.value);
}

}  // namespace piper
