#include "core/lower/orders.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/plan/node_name.h"
#include "core/plan/ranks_text.h"

namespace piper {
namespace {

constexpr Op kOpOfPass[] = {Op::forward, Op::backward, Op::backward_input, Op::backward_weight,
                            Op::update};

class Orders {
 public:
  Orders(Expanded& expanded, const Annotated& annotated)
      : dag_(expanded.dag),
        nodes_(expanded.nodes),
        total_order_(expanded.total_order),
        warnings_(expanded.warnings),
        orders_(expanded.orders),
        annotated_(annotated) {
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      for (const Tag& tag : dag_.chunks[c].tags) {
        tagged_[{tag.name, tag.index}].push_back(ChunkId{c});
      }
    }
  }

  Status run() {
    seen_.assign(dag_.nodes.size(), false);
    total_order_.resize(dag_.programs.size());
    computations_.assign(dag_.programs.size(), 0);
    chained_ = computations_;
    for (const Node& node : dag_.nodes) {
      computations_[node.program] += !runs_chunk(node.op) ? 0 : 1;
    }
    for (const Annotated::Chain& chain : annotated_.chains) {
      PIPER_TRY(add_chain(chain));
    }
    for (std::uint32_t p = 0; p < dag_.programs.size(); ++p) {
      warn_of_left_out(p);
    }
    for (const Annotated::Order& order : annotated_.orders) {
      PIPER_TRY(add_order(order));
    }
    return {};
  }

 private:
  static std::string name(const Action& action) {
    constexpr std::string_view names[] = {"F", "B", "BI", "BW", "U"};
    return std::to_string(action.stage) +
           std::string(names[static_cast<std::size_t>(action.pass)]) +
           std::to_string(action.microbatch);
  }

  // Chunks of stages on one program, by stage: a chain's actions address the uncut stage.
  std::vector<std::vector<ChunkId>> stages_of(std::uint32_t program, TagId stage_tag) const {
    std::vector<std::vector<ChunkId>> stages;
    for (const auto& [key, chunks] : tagged_) {
      if (key.first != stage_tag) {
        continue;
      }
      for (const ChunkId chunk : chunks) {
        if (dag_.chunk(chunk).program == program) {
          stages.resize(std::max<std::size_t>(stages.size(), key.second + 1));
          stages[key.second].push_back(chunk);
        }
      }
    }
    return stages;
  }

  // The nodes of one action: the pieces of the stage in order, backward ones reversed. Nothing
  // where the plan does not run that pass.
  Status nodes_of(const Action& action, const std::vector<std::vector<ChunkId>>& stages,
                  const Provenance& from, std::vector<NodeId>& found) const {
    found.clear();
    const auto refuse = [&](const std::string& why) {
      return fail(error("order.action",
                        from.plugin + ": order_chain: action " + name(action) + ": " + why,
                        from.where));
    };
    if (action.microbatch >= dag_.microbatches) {
      return refuse("expected a micro-batch below " + std::to_string(dag_.microbatches) + ", got " +
                    std::to_string(action.microbatch));
    }
    if (action.stage >= stages.size() || stages[action.stage].empty()) {
      return refuse("this place runs no stage " + std::to_string(action.stage));
    }
    for (const ChunkId piece : stages[action.stage]) {
      const ChunkNodes& nodes = nodes_[index(piece)];
      const Chunk& chunk = dag_.chunk(piece);
      if (!chunk.microbatches.empty() &&
          !std::binary_search(chunk.microbatches.begin(), chunk.microbatches.end(),
                              action.microbatch)) {
        return refuse("this place does not run that micro-batch of the stage");
      }
      const std::uint32_t at = position_of(chunk, action.microbatch);
      const auto add = [&](NodeId node) {
        if (valid(node)) {
          found.push_back(node);
        }
      };
      const auto each = [&](NodeId first) { return valid(first) ? offset(first, at) : first; };
      const NodeId weight = weight_node(dag_, nodes, piece, action.microbatch);
      switch (action.pass) {
        case Pass::forward:
          add(each(nodes.forward));
          break;
        case Pass::backward:
          add(weight);  // reversed below: BI runs before BW
          add(each(nodes.backward));
          break;
        case Pass::backward_input:
        case Pass::backward_weight:
          if (valid(nodes.backward) && !valid(weight)) {
            return refuse("the stage's backward is not split (split_backward)");
          }
          add(action.pass == Pass::backward_input ? each(nodes.backward) : weight);
          break;
        case Pass::update:
          return refuse("updates are not ordered by a chain");
      }
    }
    if (action.pass != Pass::forward) {
      std::reverse(found.begin(), found.end());
    }
    return {};
  }

  Status add_chain(const Annotated::Chain& chain) {
    const Provenance& from = annotated_.origins[chain.origin];
    const std::optional<TagId> stage_tag = annotated_.model.find_tag("PP");
    if (!stage_tag) {
      return fail(
          error("order.chain", from.plugin + ": order_chain: nothing has a tag PP", from.where));
    }
    std::uint32_t program = 0;
    while (dag_.programs[program].ranks != chain.ranks.ranks) {
      ++program;  // `apply` has checked that there is one
    }
    const std::vector<std::vector<ChunkId>> stages = stages_of(program, *stage_tag);
    std::vector<NodeId> before, tails, nodes;  // ends of the group before, and of this one
    std::vector<NodeId> order;
    std::uint32_t overlap = 0, number = 0;
    bool total = true;
    OrderLine line{program, chain.origin, /*is_chain=*/true, {}};
    std::uint32_t group = 0;
    for (const Action& action : chain.actions) {
      ++number;
      PIPER_TRY(nodes_of(action, stages, from, nodes));
      if (nodes.empty()) {
        continue;
      }
      if (action.overlap == 0 || action.overlap != overlap) {
        std::swap(before, tails);
        tails.clear();
        ++group;
      }
      if (action.overlap != 0 && action.overlap != overlap) {
        ++overlaps_;
      }
      overlap = action.overlap;
      total = total && overlap == 0;
      order.insert(order.end(), nodes.begin(), nodes.end());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (seen_[index(nodes[i])]) {
          return fail(
              error("order.twice",
                    from.plugin + ": order_chain: action " + name(action) + " is there twice",
                    from.where));
        }
        seen_[index(nodes[i])] = true;
        line.members.push_back({nodes[i], group, number});
        dag_.nodes[index(nodes[i])].overlap = overlap != 0 ? overlaps_ : 0;
        if (i > 0) {
          dag_.add_edge(nodes[i - 1], nodes[i]);
        }
      }
      for (const NodeId end : before) {
        dag_.add_edge(end, nodes.front());
      }
      tails.push_back(nodes.back());
    }
    chained_[program] += order.size();
    if (total && order.size() == computations_[program]) {
      total_order_[program] = std::move(order);
    }
    orders_.push_back(std::move(line));
    return {};
  }

  // `1B3`, of a chunk without a stage its name.
  std::string action_name(NodeId id) const {
    const Node& node = dag_.node(id);
    const std::optional<TagId> stage_tag = annotated_.model.find_tag("PP");
    for (const Tag& tag : dag_.chunk(node.chunk).tags) {
      if (stage_tag && tag.name == *stage_tag) {
        return std::to_string(tag.index) + std::string(short_name(node.op)) +
               std::to_string(node.microbatch);
      }
    }
    return describe(dag_, annotated_.model, id);
  }

  // A slip of who wrote the chain, most likely: the planner then finds a place by cost.
  void warn_of_left_out(std::uint32_t program) {
    constexpr std::size_t kNamed = 3;
    if (!dag_.trains() || chained_[program] == 0 || chained_[program] == computations_[program]) {
      return;
    }
    std::set<std::string> left_out;  // pieces of a stage have one name
    std::string names;
    for (std::uint32_t n = 0; n < dag_.nodes.size(); ++n) {
      const Node& node = dag_.nodes[n];
      if (node.program != program || !runs_chunk(node.op) || seen_[n]) {
        continue;
      }
      const std::string name = action_name(NodeId{n});
      if (left_out.insert(name).second && left_out.size() <= kNamed) {
        names += (names.empty() ? "" : ", ") + name;
      }
    }
    if (left_out.size() > kNamed) {
      names += " and " + std::to_string(left_out.size() - kNamed) + " more";
    }
    const auto line = std::find_if(orders_.begin(), orders_.end(),
                                   [&](const OrderLine& own) { return own.program == program; });
    const Provenance& from = annotated_.origins[line->origin];
    warnings_.push_back(warning("order.left_out",
                                from.plugin + ": order_chain on " +
                                    ranks_text(dag_.programs[program].ranks) + " leaves out " +
                                    names + "; what is left out is placed by cost",
                                from.where));
  }

  // The chunks that a filter's tags select, through the index where it asks for an equal tag.
  std::vector<ChunkId> chunks_of(const Filter& filter) const {
    const std::vector<ChunkId>* candidates = nullptr;
    static const std::vector<ChunkId> nothing;
    for (const Condition& condition : filter.conditions) {
      const std::optional<TagId> tag = annotated_.model.find_tag(condition.tag);
      if (tag && condition.kind == Condition::Kind::equals && candidates == nullptr) {
        const auto known = tagged_.find({*tag, condition.values[0]});
        candidates = known == tagged_.end() ? &nothing : &known->second;
      }
    }
    std::vector<ChunkId> found;
    const auto consider = [&](ChunkId id) {
      const bool all =
          std::all_of(filter.conditions.begin(), filter.conditions.end(), [&](const Condition& c) {
            if (c.tag == "MB") {
              return true;
            }
            const std::optional<TagId> tag = annotated_.model.find_tag(c.tag);
            for (const Tag& own : dag_.chunk(id).tags) {
              if (tag && own.name == *tag) {
                return c.holds(true, own.index);
              }
            }
            return c.holds(false, 0);
          });
      if (all) {
        found.push_back(id);
      }
    };
    if (candidates != nullptr) {
      std::for_each(candidates->begin(), candidates->end(), consider);
    } else {
      for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
        consider(ChunkId{c});
      }
    }
    return found;
  }

  void nodes_of(const Filter& filter, std::vector<NodeId>& found) const {
    const auto wanted = [&](std::uint32_t m) {
      return std::all_of(filter.conditions.begin(), filter.conditions.end(),
                         [&](const Condition& c) { return c.tag != "MB" || c.holds(true, m); });
    };
    std::uint32_t low = 0, high = dag_.microbatches;
    for (const Condition& c : filter.conditions) {
      if (c.tag == "MB" && c.kind == Condition::Kind::equals) {
        low = std::min(high, c.values[0]);
        high = std::min(high, low + 1);
      }
    }
    for (const ChunkId id : chunks_of(filter)) {
      const Chunk& chunk = dag_.chunk(id);
      const ChunkNodes& nodes = nodes_[index(id)];
      const std::uint32_t count = runs(dag_, chunk);
      const std::uint32_t begin = chunk.microbatches.empty() ? low : 0;
      const std::uint32_t end = chunk.microbatches.empty() ? high : count;
      const auto add = [&](NodeId node) {
        if (valid(node) && passes(filter, dag_.node(node).op)) {
          found.push_back(node);
        }
      };
      for (const NodeId first : {nodes.forward, nodes.backward}) {
        for (std::uint32_t i = begin; i < end && valid(first); ++i) {
          if (wanted(microbatch_at(chunk, i))) {
            add(offset(first, i));
          }
        }
      }
      for (std::uint32_t i = begin; i < end && valid(nodes.weight); ++i) {
        if (const std::uint32_t m = microbatch_at(chunk, i); wanted(m)) {
          add(weight_node(dag_, nodes, id, m));
        }
      }
    }
  }

  static bool passes(const Filter& filter, Op op) {
    return filter.passes.empty() ||
           std::any_of(filter.passes.begin(), filter.passes.end(),
                       [&](Pass pass) { return kOpOfPass[static_cast<std::size_t>(pass)] == op; });
  }

  Status add_order(const Annotated::Order& order) {
    const Provenance& from = annotated_.origins[order.origin];
    std::vector<NodeId> group;
    std::vector<std::vector<NodeId>> before(dag_.programs.size()), now = before;  // by program
    std::vector<OrderLine> lines(dag_.programs.size());
    for (std::size_t g = 0; g < order.groups.size(); ++g) {
      group.clear();
      for (const Filter& filter : order.groups[g]) {
        nodes_of(filter, group);
      }
      if (group.empty() && dag_.trains()) {
        return fail(error("order.no_match",
                          from.plugin + ": order: group " + std::to_string(g + 1) + " " +
                              to_string(order.groups[g].front()) + " matches nothing",
                          place_of(order.groups[g].front(), from)));
      }
      if (order.groups[g].size() > 1) {
        ++overlaps_;
        for (const NodeId node : group) {
          dag_.nodes[index(node)].overlap = overlaps_;
        }
      }
      for (const NodeId node : group) {
        now[dag_.node(node).program].push_back(node);
      }
      for (std::size_t p = 0; p < now.size(); ++p) {
        for (const NodeId first : before[p]) {
          for (const NodeId second : now[p]) {
            dag_.add_edge(first, second);
          }
        }
        for (const NodeId node : now[p]) {
          const auto number = static_cast<std::uint32_t>(g + 1);
          lines[p].members.push_back({node, number, number});
        }
        if (!now[p].empty()) {
          before[p] = std::exchange(now[p], {});
        }
      }
    }
    for (std::uint32_t p = 0; p < lines.size(); ++p) {
      if (!lines[p].members.empty()) {
        lines[p].program = p;
        lines[p].origin = order.origin;
        orders_.push_back(std::move(lines[p]));
      }
    }
    return {};
  }

  Dag& dag_;
  const std::vector<ChunkNodes>& nodes_;
  std::vector<std::vector<NodeId>>& total_order_;
  Diagnostics& warnings_;
  std::vector<OrderLine>& orders_;
  const Annotated& annotated_;
  std::vector<std::size_t> computations_;  // by program
  std::vector<std::size_t> chained_;       // by program: those of them that a chain has
  std::vector<bool> seen_;                 // by NodeId: in a chain
  std::uint32_t overlaps_ = 0;             // overlap groups so far
  std::map<std::pair<TagId, std::uint32_t>, std::vector<ChunkId>> tagged_;
};

}  // namespace

Status add_orders(Expanded& expanded, const Annotated& annotated) {
  return Orders(expanded, annotated).run();
}

}  // namespace piper
