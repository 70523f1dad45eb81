#include "runtime/autograd/split_backward.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace piper {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::Node;

edge_list edges_of(const std::vector<at::Tensor>& tensors) {
  edge_list edges;
  for (const at::Tensor& tensor : tensors) {
    edges.push_back(torch::autograd::impl::gradient_edge(tensor));
  }
  return edges;
}

// Which nodes lead to one of `targets`; `order` is the graph below `roots`, each node after what it
// leads to. Only looked up, never iterated over.
class Reach {
 public:
  Reach(const edge_list& roots, const edge_list& targets) {
    for (const Edge& target : targets) {
      leads_[target.function.get()] = true;
    }
    for (const Edge& root : roots) {
      visit(root.function.get());
      while (!stack_.empty()) {
        advance();
      }
    }
  }

  bool leads(const Edge& edge) const { return edge.is_valid() && leads_.at(edge.function.get()); }

  const std::vector<Node*>& order() const { return order_; }

  // Calls one of the two for every node that leads to a target: for those that also have an edge
  // towards parameters only, and for the others.
  template <typename Frontier, typename Other>
  void visit_leading(Frontier frontier, Other other) const {
    for (Node* const node : order_) {
      if (!leads_.at(node)) {
        continue;
      }
      const edge_list& edges = node->next_edges();
      const bool weights = std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
        return edge.is_valid() && !leads(edge);
      });
      weights ? frontier(node) : other(node);
    }
  }

 private:
  void visit(Node* node) {
    if (leads_.emplace(node, false).second) {
      stack_.emplace_back(node, 0);
    }
  }

  void advance() {
    auto& [node, next] = stack_.back();
    if (next < node->num_outputs()) {
      Node* const below = node->next_edge(next++).function.get();
      if (below != nullptr) {
        visit(below);
      }
      return;
    }
    bool leads_on = false;
    for (const Edge& edge : node->next_edges()) {
      leads_on |= leads(edge);
    }
    leads_[node] = leads_on;
    order_.push_back(node);
    stack_.pop_back();
  }

  std::unordered_map<const Node*, bool> leads_;
  std::vector<Node*> order_;  // without the targets
  std::vector<std::pair<Node*, std::size_t>> stack_;
};

// Frees what a node saved as soon as BI has run it. The engine keeps it until the end, and a saved
// input of the frontier owns the rest of the graph.
class ReleaseAfterRun final : public torch::autograd::FunctionPostHook {
 public:
  explicit ReleaseAfterRun(Node* node) : node_(node) {}
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& outputs,
                                     const std::vector<at::Tensor>&) override {
    node_->release_variables();
    return outputs;
  }

 private:
  Node* node_;
};

}  // namespace

edge_list lookups(const edge_list& roots) {
  const auto is_lookup = [](const Node& node) {
    const std::string name = node.name();
    const edge_list& edges = node.next_edges();
    return (name == "EmbeddingBackward0" || name == "IndexSelectBackward0" ||
            name == "IndexBackward0" || name == "GatherBackward0") &&
           std::all_of(edges.begin(), edges.end(), [](const Edge& edge) {
             return !edge.is_valid() || edge.function->num_outputs() == 0;
           });
  };
  const Reach below(roots, {});
  edge_list found;
  for (Node* const node : below.order()) {
    if (is_lookup(*node)) {
      found.emplace_back(node->getptr(), 0);
    }
  }
  return found.empty() ? roots : found;
}

std::vector<at::Tensor> backward_input(const std::vector<at::Tensor>& outputs,
                                       const std::vector<at::Tensor>& gradients,
                                       const std::vector<at::Tensor>& inputs,
                                       WeightGradients& later, const edge_list& ends) {
  return backward_input(edges_of(outputs), gradients, edges_of(inputs), later, ends);
}

std::vector<at::Tensor> backward_input(const edge_list& outputs,
                                       const std::vector<at::Tensor>& gradients,
                                       const edge_list& inputs, WeightGradients& later,
                                       const edge_list& ends) {
  edge_list wanted = inputs;
  wanted.insert(wanted.end(), ends.begin(), ends.end());
  const Reach reach(outputs, wanted);

  edge_list roots;
  std::vector<at::Tensor> root_gradients;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool now = reach.leads(outputs[i]);
    (now ? roots : later.roots).push_back(outputs[i]);
    (now ? root_gradients : later.gradients).push_back(gradients[i]);
  }
  std::vector<Node*> frontier;
  reach.visit_leading(
      [&](Node* node) {
        frontier.push_back(node);
        for (std::uint32_t k = 0; k < node->num_inputs(); ++k) {
          wanted.emplace_back(node->getptr(), k);
        }
      },
      [](Node* node) { node->add_post_hook(std::make_unique<ReleaseAfterRun>(node)); });
  if (roots.empty()) {
    return std::vector<at::Tensor>(inputs.size());
  }

  std::vector<at::Tensor> got = Engine::get_default_engine().execute(
      roots, root_gradients, /*keep_graph=*/true, /*create_graph=*/false,
      /*accumulate_grad=*/false, wanted);

  for (Node* const node : frontier) {
    for (Edge& edge : node->next_edges()) {
      if (reach.leads(edge)) {
        edge = Edge();
      }
    }
  }
  for (std::size_t i = inputs.size(); i < wanted.size(); ++i) {
    if (got[i].defined()) {
      later.roots.push_back(wanted[i]);
      later.gradients.push_back(std::move(got[i]));
    }
  }
  got.resize(inputs.size());
  return got;
}

void backward_weight(WeightGradients& rest) {
  if (!rest.roots.empty()) {
    Engine::get_default_engine().execute(rest.roots, rest.gradients, /*keep_graph=*/false,
                                         /*create_graph=*/false, /*accumulate_grad=*/true);
  }
  rest = {};
}

}  // namespace piper
