#include "core/lower/expand.h"

#include <algorithm>
#include <string>

namespace piper {
namespace {

class Expander {
 public:
  Expander(Dag tables, const Annotated& annotated) : annotated_(annotated) {
    out_.dag = std::move(tables);
    out_.nodes.resize(dag().chunks.size());
  }

  Expected<Expanded> run() {
    make_nodes();
    connect();
    seen_.assign(dag().nodes.size(), false);
    for (const Annotated::Chain& chain : annotated_.chains) {
      PIPER_TRY(add_chain(chain));
    }
    for (const Annotated::Order& order : annotated_.orders) {
      PIPER_TRY(add_order(order));
    }
    return std::move(out_);
  }

 private:
  Dag& dag() { return out_.dag; }

  NodeId add_pass(ChunkId chunk, Op op) {
    Node node;
    node.op = op;
    node.program = static_cast<std::uint16_t>(dag().chunk(chunk).program);
    node.chunk = chunk;
    node.origin = dag().programs[node.program].origin;
    const auto first = NodeId{static_cast<std::uint32_t>(dag().nodes.size())};
    for (std::uint32_t m = 0; m < dag().microbatches; ++m) {
      node.microbatch = m;
      node.peer = NodeId{index(first) + m};
      dag().add(node);
    }
    return first;
  }

  // Program by program, so that what a rank works on lies together.
  void make_nodes() {
    for (std::uint32_t p = 0; p < dag().programs.size(); ++p) {
      for (std::uint32_t c = 0; c < dag().chunks.size(); ++c) {
        if (dag().chunks[c].program != p) {
          continue;
        }
        ChunkNodes& nodes = out_.nodes[c];
        nodes.forward = add_pass(ChunkId{c}, Op::forward);
        if (!dag().trains() || !dag().chunks[c].has_backward) {
          continue;
        }
        nodes.backward =
            add_pass(ChunkId{c}, dag().chunk_split[c] ? Op::backward_input : Op::backward);
        if (dag().chunk_split[c]) {
          nodes.weight = add_pass(ChunkId{c}, Op::backward_weight);
        }
      }
    }
  }

  void add_edges(NodeId from, NodeId to) {
    for (std::uint32_t m = 0; m < dag().microbatches; ++m) {
      dag().add_edge(ChunkNodes::at(from, m), ChunkNodes::at(to, m));
    }
  }

  void connect() {
    for (std::uint32_t c = 0; c < dag().chunks.size(); ++c) {
      const Chunk& chunk = dag().chunks[c];
      const ChunkNodes& nodes = out_.nodes[c];
      if (valid(nodes.backward)) {
        add_edges(nodes.forward, nodes.backward);
      }
      if (valid(nodes.weight)) {
        add_edges(nodes.backward, nodes.weight);
      }
      for (const ValueId input : chunk.inputs) {
        const ChunkId producer = dag().producer[index(input)];
        if (!valid(producer)) {
          continue;
        }
        const bool crosses = dag().chunk(producer).program != chunk.program;
        const ChunkNodes& source = out_.nodes[index(producer)];
        if (crosses) {
          out_.flows.push_back({input, producer, ChunkId{c}, false});
        } else {
          add_edges(source.forward, nodes.forward);
        }
        if (!computes_gradient(dag(), input, ChunkId{c})) {
          continue;
        }
        if (crosses) {
          out_.flows.push_back({input, producer, ChunkId{c}, true});
        } else {
          add_edges(nodes.backward, source.backward);
        }
      }
    }
  }

  static std::string name(const Action& action) {
    constexpr std::string_view names[] = {"F", "B", "BI", "BW", "U"};
    return std::to_string(action.stage) +
           std::string(names[static_cast<std::size_t>(action.pass)]) +
           std::to_string(action.microbatch);
  }

  // The nodes of one action on its program: the pieces of the stage in order, backward ones
  // reversed. Empty where the plan does not run that pass.
  Expected<std::vector<NodeId>> nodes_of(const Action& action, std::uint32_t program,
                                         TagId stage_tag, const Provenance& from) {
    const auto refuse = [&](const std::string& why) {
      return fail(error("order.action",
                        from.plugin + ": order_chain: action " + name(action) + ": " + why,
                        from.where));
    };
    if (action.microbatch >= dag().microbatches) {
      return refuse("expected a micro-batch below " + std::to_string(dag().microbatches) +
                    ", got " + std::to_string(action.microbatch));
    }
    const std::vector<ChunkId>& pieces = pieces_of(program, stage_tag, action.stage);
    if (pieces.empty()) {
      return refuse("this place runs no stage " + std::to_string(action.stage));
    }
    std::vector<NodeId> found;
    for (const ChunkId piece : pieces) {
      const ChunkNodes& nodes = out_.nodes[index(piece)];
      const bool split = dag().chunk_split[index(piece)];
      const auto add = [&](NodeId first) {
        if (valid(first)) {
          found.push_back(ChunkNodes::at(first, action.microbatch));
        }
      };
      switch (action.pass) {
        case Pass::forward:
          add(nodes.forward);
          break;
        case Pass::backward:
          add(nodes.weight);  // pieces are reversed below: BI runs before BW
          add(nodes.backward);
          break;
        case Pass::backward_input:
        case Pass::backward_weight:
          if (!split) {
            return refuse("the stage's backward is not split (split_backward)");
          }
          add(action.pass == Pass::backward_input ? nodes.backward : nodes.weight);
          break;
        case Pass::update:
          return refuse("updates are not ordered by a chain");
      }
    }
    if (action.pass != Pass::forward) {
      std::reverse(found.begin(), found.end());
    }
    return found;
  }

  const std::vector<ChunkId>& pieces_of(std::uint32_t program, TagId tag, std::uint32_t stage) {
    if (pieces_.empty()) {
      pieces_.resize(dag().programs.size());
      for (std::uint32_t c = 0; c < dag().chunks.size(); ++c) {
        for (const Tag& own : dag().chunks[c].tags) {
          if (own.name == tag) {
            std::vector<std::vector<ChunkId>>& stages = pieces_[dag().chunks[c].program];
            stages.resize(std::max<std::size_t>(stages.size(), own.index + 1));
            stages[own.index].push_back(ChunkId{c});
          }
        }
      }
    }
    static const std::vector<ChunkId> nothing;
    return stage < pieces_[program].size() ? pieces_[program][stage] : nothing;
  }

  Status add_chain(const Annotated::Chain& chain) {
    const Provenance& from = annotated_.origins[chain.origin];
    const std::optional<TagId> stage_tag = annotated_.model.find_tag("PP");
    if (!stage_tag) {
      return fail(
          error("order.chain", from.plugin + ": order_chain: nothing has a tag PP", from.where));
    }
    std::uint32_t program = 0;
    while (dag().programs[program].ranks != chain.ranks.ranks) {
      ++program;  // `apply` has checked that there is one
    }
    NodeId last = none<NodeId>();
    for (const Action& action : chain.actions) {
      PIPER_ASSIGN(const std::vector<NodeId> nodes, nodes_of(action, program, *stage_tag, from));
      for (const NodeId node : nodes) {
        if (seen_[index(node)]) {
          return fail(
              error("order.twice",
                    from.plugin + ": order_chain: action " + name(action) + " is there twice",
                    from.where));
        }
        seen_[index(node)] = true;
        if (valid(last)) {
          dag().add_edge(last, node);
        }
        last = node;
      }
    }
    return {};
  }

  bool matches(const Filter& filter, NodeId id) const {
    const Node& node = out_.dag.node(id);
    constexpr Op ops[] = {Op::forward, Op::backward, Op::backward_input, Op::backward_weight,
                          Op::update};
    const bool pass = filter.passes.empty() ||
                      std::any_of(filter.passes.begin(), filter.passes.end(), [&](Pass p) {
                        return ops[static_cast<std::size_t>(p)] == node.op;
                      });
    return pass &&
           std::all_of(filter.conditions.begin(), filter.conditions.end(), [&](const Condition& c) {
             if (c.tag == "MB") {
               return c.holds(true, node.microbatch);
             }
             const std::optional<TagId> tag = annotated_.model.find_tag(c.tag);
             for (const Tag& own : out_.dag.chunk(node.chunk).tags) {
               if (tag && own.name == *tag) {
                 return c.holds(true, own.index);
               }
             }
             return c.holds(false, 0);
           });
  }

  Status add_order(const Annotated::Order& order) {
    const Provenance& from = annotated_.origins[order.origin];
    const auto nodes = static_cast<std::uint32_t>(out_.dag.nodes.size());
    std::vector<std::vector<NodeId>> groups;
    for (const std::vector<Filter>& filters : order.groups) {
      std::vector<NodeId>& group = groups.emplace_back();
      for (std::uint32_t n = 0; n < nodes; ++n) {
        if (std::any_of(filters.begin(), filters.end(),
                        [&](const Filter& f) { return matches(f, NodeId{n}); })) {
          group.push_back(NodeId{n});
        }
      }
      if (group.empty() && dag().trains()) {
        return fail(error("order.no_match",
                          from.plugin + ": order: group " + std::to_string(groups.size()) + " " +
                              to_string(filters.front()) + " matches nothing",
                          from.where));
      }
    }
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    for (std::size_t g = 1; g < groups.size(); ++g) {
      for (const NodeId before : groups[g - 1]) {
        for (const NodeId after : groups[g]) {
          if (dag().node(before).program == dag().node(after).program) {
            dag().add_edge(before, after);
          }
        }
      }
    }
    return {};
  }

  const Annotated& annotated_;
  Expanded out_;
  std::vector<bool> seen_;                                 // by NodeId: in a chain
  std::vector<std::vector<std::vector<ChunkId>>> pieces_;  // by program and stage
};

}  // namespace

Expected<Expanded> expand(Dag tables, const Annotated& annotated) {
  return Expander(std::move(tables), annotated).run();
}

}  // namespace piper
