#include "core/lower/order_cycle.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <string>

#include "core/lower/edge_values.h"
#include "core/lower/list_schedule.h"
#include "core/plan/ranks_text.h"

namespace piper {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kMostSteps = 50'000'000;  // about a second

// Operations, and for each line of orders a gate before each of its groups: a member opens the gate
// after its own group (one task further), a gate the next gate and the members of its group.
class Cycles {
 public:
  Cycles(const Dag& dag, const std::vector<OrderLine>& orders)
      : dag_(dag), orders_(orders), op_of_(operations(dag)) {
    place_gates();
    connect();
    drop_what_is_on_no_cycle();
  }

  struct Step {
    std::uint32_t from = kNone;    // operation
    std::uint32_t source = kNone;  // what says it: an edge, or a member of a line
    std::uint32_t line = kNone;    // kNone: an edge
    std::uint32_t target = kNone;  // member of the line
  };
  // From each operation to the next, and from the last to the first.
  std::vector<Step> shortest() {
    for (std::uint32_t start = 0; start < op_of_.size() && steps_ < kMostSteps; ++start) {
      if (left_[start]) {
        search(start);
      }
    }
    return best_;
  }

 private:
  struct Arc {
    std::uint32_t to;
    std::uint32_t source;  // of an edge; of a line's gate: a member
    std::uint32_t line;
  };

  // Where a receive or a gather is posted is core's choice, and follows from the orders.
  bool is_posting(const Edge& edge) const {
    const Op from = dag_.node(edge.from).op, to = dag_.node(edge.to).op;
    return runs_chunk(from) && !traits(to).put_off.empty();
  }

  void place_gates() {
    auto next = static_cast<std::uint32_t>(dag_.nodes.size());
    for (const OrderLine& line : orders_) {
      first_gate_.push_back(next);
      next += line.members.empty() ? 0 : line.members.back().group + 2;
    }
    vertices_ = next;
  }

  template <typename Visit>
  void for_each_arc(Visit visit) const {
    for (std::uint32_t e = 0; e < dag_.edges.size(); ++e) {
      const Edge& edge = dag_.edges[e];
      const std::uint32_t from = op_of_[index(edge.from)], to = op_of_[index(edge.to)];
      if (from != to && !is_posting(edge)) {
        visit(from, Arc{to, e, kNone});
      }
    }
    for (std::uint32_t l = 0; l < orders_.size(); ++l) {
      const OrderLine& line = orders_[l];
      for (std::uint32_t m = 0; m < line.members.size(); ++m) {
        const OrderLine::Member& member = line.members[m];
        const std::uint32_t gate = first_gate_[l] + member.group, op = op_of_[index(member.node)];
        visit(op, Arc{gate + 1, m, l});
        visit(gate, Arc{op, m, l});
      }
      const std::uint32_t gates = line.members.empty() ? 0 : line.members.back().group + 2;
      for (std::uint32_t g = 1; g < gates; ++g) {
        visit(first_gate_[l] + g - 1, Arc{first_gate_[l] + g, kNone, l});
      }
    }
  }

  void connect() {
    first_.assign(vertices_ + 1, 0);
    for_each_arc([&](std::uint32_t from, const Arc&) { ++first_[from + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    arcs_.resize(first_.back());
    std::vector<std::uint32_t> fill(first_.begin(), first_.end() - 1);
    for_each_arc([&](std::uint32_t from, const Arc& arc) { arcs_[fill[from]++] = arc; });
  }

  // What nothing on a cycle leads to, and what leads to none.
  void drop_what_is_on_no_cycle() {
    left_.assign(vertices_, true);
    std::vector<std::uint32_t> in(vertices_, 0), out(vertices_, 0), gone;
    std::vector<std::vector<std::uint32_t>> before(vertices_);
    for (std::uint32_t v = 0; v < vertices_; ++v) {
      out[v] = first_[v + 1] - first_[v];
      for (std::uint32_t a = first_[v]; a < first_[v + 1]; ++a) {
        ++in[arcs_[a].to];
        before[arcs_[a].to].push_back(v);
      }
    }
    const auto drop = [&](std::uint32_t v) {
      if (left_[v]) {
        left_[v] = false;
        gone.push_back(v);
      }
    };
    for (std::uint32_t v = 0; v < vertices_; ++v) {
      if (in[v] == 0 || out[v] == 0) {
        drop(v);
      }
    }
    for (std::size_t i = 0; i < gone.size(); ++i) {
      const std::uint32_t v = gone[i];
      for (std::uint32_t a = first_[v]; a < first_[v + 1]; ++a) {
        if (--in[arcs_[a].to] == 0) {
          drop(arcs_[a].to);
        }
      }
      for (const std::uint32_t other : before[v]) {
        if (--out[other] == 0) {
          drop(other);
        }
      }
    }
  }

  bool is_op(std::uint32_t v) const { return v < op_of_.size(); }

  // The shortest way from `start` back to it, where that beats the best so far: breadth first, an
  // arc that leaves an operation counts.
  void search(std::uint32_t start) {
    length_.resize(vertices_, kNone);
    by_.resize(vertices_);
    from_.resize(vertices_);
    std::vector<std::uint32_t> seen{start};
    std::deque<std::uint32_t> queue{start};
    length_[start] = 0;
    std::uint32_t shortest = best_.empty() ? kNone : static_cast<std::uint32_t>(best_.size());
    bool is_back = false;
    while (!queue.empty()) {
      const std::uint32_t v = queue.front();
      queue.pop_front();
      const std::uint32_t length = length_[v] + (is_op(v) ? 1 : 0);
      if (length >= shortest) {
        continue;
      }
      for (std::uint32_t a = first_[v]; a < first_[v + 1]; ++a) {
        const Arc& arc = arcs_[a];
        ++steps_;
        if (arc.to == start) {
          from_[start] = v;
          by_[start] = a;
          shortest = length;
          is_back = true;
          break;
        }
        if (left_[arc.to] && (length_[arc.to] == kNone || length < length_[arc.to])) {
          if (length_[arc.to] == kNone) {
            seen.push_back(arc.to);
          }
          length_[arc.to] = length;
          from_[arc.to] = v;
          by_[arc.to] = a;
          if (is_op(v)) {
            queue.push_back(arc.to);
          } else {
            queue.push_front(arc.to);
          }
        }
      }
    }
    if (is_back) {
      best_ = way_to(start);
    }
    for (const std::uint32_t v : seen) {
      length_[v] = kNone;
    }
  }

  std::vector<Step> way_to(std::uint32_t start) const {
    std::vector<Step> way;
    std::uint32_t v = start;
    do {
      Step step;
      const Arc& last = arcs_[by_[v]];
      step.line = last.line;
      step.target = last.source;
      v = from_[v];
      while (!is_op(v)) {  // back through the gates to the member that opened the first
        step.source = arcs_[by_[v]].source;
        v = from_[v];
      }
      step.source = step.line == kNone ? last.source : step.source;
      step.from = v;
      way.push_back(step);
    } while (v != start);
    std::reverse(way.begin(), way.end());
    return way;
  }

  const Dag& dag_;
  const std::vector<OrderLine>& orders_;
  const std::vector<std::uint32_t> op_of_;  // by node
  std::vector<std::uint32_t> first_gate_;   // by line
  std::uint32_t vertices_ = 0;
  std::vector<std::uint32_t> first_;  // by vertex: of its arcs
  std::vector<Arc> arcs_;
  std::vector<bool> left_;
  std::size_t steps_ = 0;
  std::vector<std::uint32_t> length_, by_, from_;  // of a search
  std::vector<Step> best_;
};

std::string data_text(const Content& data) {
  if (data.kind == BufferKind::saved) {
    return "what it keeps for the backward";
  }
  const bool is_gradient =
      data.kind == BufferKind::gradient || data.kind == BufferKind::routed_gradient;
  return valid(data.value)
             ? (is_gradient ? "gradient %" : "activation %") + std::to_string(index(data.value))
             : edge_label(data);
}

std::string edge_reason(const EdgeValues& values, const Edge& edge) {
  std::string text;
  for (const Content& data : values.of(edge)) {
    text += (text.empty() ? "" : ", ") + data_text(data);
  }
  return text.empty() ? "core runs them in this order" : text;
}

std::string line_reason(const Dag& dag, const OrderLine& line, const OrderLine::Member& first,
                        const OrderLine::Member& second) {
  const char* const what = line.is_chain ? "action " : "group ";
  return (line.is_chain ? "order_chain of " : "order of ") + dag.origins[line.origin].plugin +
         " on " + ranks_text(dag.programs[line.program].ranks) + ", " + what +
         std::to_string(first.number) + " before " + what + std::to_string(second.number);
}

// An edge that carries nothing is an order's, where one has both of its ends.
void find_order(const std::vector<OrderLine>& orders, const Edge& edge, Cycles::Step& step) {
  for (std::uint32_t l = 0; l < orders.size(); ++l) {
    const std::vector<OrderLine::Member>& members = orders[l].members;
    const auto at = [&](NodeId node) {
      return static_cast<std::uint32_t>(
          std::find_if(members.begin(), members.end(),
                       [&](const OrderLine::Member& member) { return member.node == node; }) -
          members.begin());
    };
    const std::uint32_t from = at(edge.from), to = at(edge.to);
    if (from < members.size() && to < members.size() && members[from].group < members[to].group) {
      step.line = l;
      step.source = from;
      step.target = to;
      return;
    }
  }
}

}  // namespace

Diagnostic order_cycle(const Dag& dag, const std::vector<OrderLine>& orders,
                       const ModelGraph& model) {
  std::vector<Cycles::Step> way = Cycles(dag, orders).shortest();
  const EdgeValues values(dag, model);
  for (Cycles::Step& step : way) {
    if (step.line == kNone && values.of(dag.edges[step.source]).empty()) {
      find_order(orders, dag.edges[step.source], step);
    }
  }
  const auto ordered = std::find_if(way.begin(), way.end(),
                                    [](const Cycles::Step& step) { return step.line != kNone; });
  if (ordered == way.end()) {  // of core's own making
    return error("order.cycle", "the orders and the data they need form a cycle");
  }
  const Provenance& from = dag.origins[orders[ordered->line].origin];
  std::rotate(way.begin(), ordered + 1, way.end());  // the order comes last
  Diagnostic text = error("order.cycle",
                          from.plugin + ": the orders and the data they need form a cycle of " +
                              std::to_string(way.size()) + " tasks",
                          from.where);
  for (std::size_t i = 0; i < way.size(); ++i) {
    const Cycles::Step& step = way[i];
    const std::string edge = describe(dag, model, NodeId{step.from}) + " comes before " +
                             describe(dag, model, NodeId{way[(i + 1) % way.size()].from}) + ": ";
    if (step.line == kNone) {
      text.note(edge + edge_reason(values, dag.edges[step.source]));
      continue;
    }
    const OrderLine& line = orders[step.line];
    text.note(edge + line_reason(dag, line, line.members[step.source], line.members[step.target]),
              dag.origins[line.origin].where);
  }
  return text;
}

}  // namespace piper
