#include "core/lower/dag_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/lower/edge_values.h"
#include "core/lower/program.h"
#include "core/plan/names.h"
#include "core/plan/node_name.h"
#include "core/plan/tables_text.h"

namespace piper {
namespace {

constexpr std::uint32_t kNoChain = 0xffffffff;
constexpr std::array<std::string_view, 5> kRoutes{"none", "enter_forward", "leave_forward",
                                                  "enter_backward", "leave_backward"};

class DagPrinter {
 public:
  DagPrinter(const Dag& dag, const ModelGraph& model)
      : dag_(dag), model_(model), names_(dag.chunks, model.tag_names), edge_values_(dag, model) {}

  std::string print() {
    text_ = "piper-dag 1\n" + print_tables(plan_tables(dag_, model_), model_);
    chunks();
    for (std::uint32_t v = 0; v < dag_.uses.size(); ++v) {
      value(v);
    }
    for (std::uint32_t b = 0; b < dag_.policies.size(); ++b) {
      policy(b, dag_.policies[b]);
    }
    for (std::uint32_t p = 0; p < dag_.programs.size(); ++p) {
      program(p, dag_.programs[p]);
    }
    if (!dag_.chains.first.empty()) {
      text_ += "chains of " + std::to_string(dag_.chains.first.size()) + " nodes\n";
    }
    const Adjacency before = predecessors(dag_);
    for (std::uint32_t n = 0; n < dag_.nodes.size(); ++n) {
      node(n, before);
    }
    return std::move(text_);
  }

 private:
  void number(std::string_view name, std::uint32_t value) {
    text_ += name;
    append_integer(text_, value);
  }

  template <typename Id>
  void sigil(std::string_view name, Id id) {
    if (valid(id)) {
      number(name, index(id));
    }
  }

  template <typename Items, typename Append>
  void list(std::string_view open, const Items& items, Append append, char close = ')') {
    text_ += open;
    bool first = true;
    for (const auto& item : items) {
      text_ += first ? "" : ", ";
      first = false;
      append(item);
    }
    text_ += close;
  }
  template <typename Items>
  void numbers(std::string_view open, const Items& items) {
    list(open, items, [&](auto item) { number("", static_cast<std::uint32_t>(item)); });
  }

  void chunks() {
    for (std::uint32_t c = 0; c < dag_.chunk_split.size(); ++c) {
      if (!dag_.chunk_split[c].empty()) {
        number("split_backward ", c);
        numbers(" microbatches (", dag_.chunk_split[c]);
        text_ += '\n';
      }
    }
    for (std::uint32_t c = 0; c < dag_.chunk_sharding.size(); ++c) {
      if (dag_.chunk_sharding[c] != Annotated::kNothing) {
        number("sharded ", c);
        number(" by ", dag_.chunk_sharding[c]);
        text_ += '\n';
      }
    }
  }

  void value(std::uint32_t v) {
    if (!dag_.wants_gradient[v] && dag_.makers[v].empty() && dag_.uses[v].empty()) {
      return;
    }
    number("value ", v);
    text_ += dag_.wants_gradient[v] ? " gradient" : "";
    numbers(" makers (", dag_.makers[v]);
    list(" uses (", dag_.uses[v], [&](const Use& use) {
      number("", index(use.chunk));
      number(":", use.input);
    });
    text_ += '\n';
  }

  void policy(std::uint32_t b, const BucketPolicy& policy) {
    number("policy ", b);
    number(" origin ", policy.origin);
    number(" prefetch ", policy.prefetch);
    text_ += " reduce ";
    append_quoted(text_, policy.reduce_stream);
    text_ += " gather ";
    append_quoted(text_, policy.gather_stream);
    text_ += '\n';
    for (std::size_t h = 0; h < policy.groups.size(); ++h) {
      list(
          "  home [", policy.groups[h], [&](const auto& group) { numbers("(", group); }, ']');
      if (h < policy.expert_of.size()) {
        numbers(" experts (", policy.expert_of[h]);
      }
      text_ += '\n';
    }
  }

  void program(std::uint32_t p, const DagProgram& program) {
    number("program ", p);
    number(" origin ", program.origin);
    numbers(" ranks (", program.ranks);
    numbers(" buckets (", program.buckets);
    text_ += '\n';
    for (std::uint32_t s = 0; s < program.streams.size(); ++s) {
      number("  stream ", s);
      text_ += ' ';
      text_ += kStreamKinds[static_cast<std::size_t>(program.streams[s].kind)];
      text_ += ' ';
      append_quoted(text_, program.streams[s].name);
      text_ += '\n';
    }
  }

  void node(std::uint32_t n, const Adjacency& before) {
    const Node& node = dag_.nodes[n];
    number("node ", n);
    text_ += ' ' + names_.of(identity(node)) + " = ";
    text_ += to_string(node.op);
    if (node.route != Route::none) {
      text_ += ' ';
      text_ += kRoutes[static_cast<std::size_t>(node.route)];
    }
    number(" p", node.program);
    number(" s", node.stream);
    sigil(" c", node.chunk);
    number(" m", node.microbatch);
    if (node.overlap != 0) {
      number(" overlap ", node.overlap);
    }
    sigil(" %", node.value);
    sigil(" b", node.bucket);
    sigil(" on ", node.communicator);
    sigil(" peer ", node.peer);
    chains(n);
    edges(n, before);
    text_ += '\n';
  }

  void chains(std::uint32_t n) {
    const ChainTable& table = dag_.chains;
    if (n >= table.first.size()) {
      return;
    }
    const std::size_t end =
        n + 1 < table.first.size() ? table.first[n + 1] : table.parameter.size();
    if (table.first[n] == end) {
      return;
    }
    const auto chain = [&](std::uint32_t k) { k == kNoChain ? void(text_ += '-') : number("", k); };
    text_ += " chains (";
    for (std::size_t entry = table.first[n]; entry < end; ++entry) {
      text_ += entry == table.first[n] ? "" : ", ";
      chain(table.parameter[entry]);
      text_ += '/';
      chain(table.gradient[entry]);
    }
    text_ += ')';
  }

  void edges(std::uint32_t n, const Adjacency& before) {
    const auto begin = before.other.begin() + before.first[n],
               end = before.other.begin() + before.first[n + 1];
    for (auto from = begin; from != end; ++from) {
      if (std::find(begin, from, *from) != from) {
        continue;
      }
      number(from == begin ? " after " : ", ", index(*from));
      const std::vector<Content> what = edge_values_.of({*from, NodeId{n}});
      if (!what.empty()) {
        list(" (", what, [&](const Content& item) { text_ += edge_label(item); });
      }
    }
  }

  const Dag& dag_;
  const ModelGraph& model_;
  NodeNames names_;
  EdgeValues edge_values_;
  std::string text_;
};

}  // namespace

NodeIdentity identity(const Node& node) {
  return {node.op,
          node.program,
          node.microbatch,
          node.chunk,
          node.value,
          node.bucket,
          node.route == Route::enter_forward || node.route == Route::enter_backward,
          node.route == Route::enter_backward || node.route == Route::leave_backward};
}

std::string describe(const Dag& dag, const ModelGraph& model, NodeId node) {
  return NodeNames(dag.chunks, model.tag_names).of(identity(dag.node(node)));
}

std::string print(const Dag& dag, const ModelGraph& model) {
  return DagPrinter(dag, model).print();
}

std::string print(const Expanded& expanded, const ModelGraph& model) {
  std::string text = print(expanded.dag, model);
  for (const Flow& flow : expanded.flows) {
    const ChunkId from = flow.gradient ? flow.user : flow.maker,
                  to = flow.gradient ? flow.maker : flow.user;
    text += std::string("flow ") + (flow.gradient ? "grad %" : "%") +
            std::to_string(index(flow.value)) + " from " + std::to_string(index(from)) + " to " +
            std::to_string(index(to)) + '\n';
  }
  return text;
}

}  // namespace piper
