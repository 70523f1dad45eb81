#include "runtime/tasks/backward.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "runtime/tasks/chain_memory.h"
#include "runtime/tasks/kernels.h"

namespace piper {
namespace {

// What backward and backward_input have in common: roots, and the gradients of inputs.
class BackwardBase : public ReleasingTask {
 public:
  explicit BackwardBase(const Site& site)
      : ReleasingTask(site),
        memory_(site),
        count_(site.find<ScalarCell>(Buffer::Kind::token_count)) {}

  Status resolve(const Site& site) {
    const Chunk& chunk = site.chunk();
    saved_ = site.find<SavedCell>(Buffer::Kind::saved);
    if (saved_ == nullptr) {
      return misfit(site, "no buffer for the saved graph");
    }
    if (chunk.has_loss && count_ == nullptr) {
      return misfit(site, "it has the loss, but no token count");
    }
    for (std::size_t i = 0; i < chunk.outputs.size(); ++i) {
      std::vector<std::pair<ChunkId, const TensorCell*>> consumers;
      for (const BufferId id : site.program.reads_of(site.task)) {
        const Buffer& buffer = site.program.buffer(id);
        if (buffer.kind == Buffer::Kind::gradient && buffer.value == chunk.outputs[i]) {
          consumers.emplace_back(buffer.chunk, &site.cell<TensorCell>(id));
        }
      }
      // The last one first, as autograd adds within a chunk.
      std::sort(consumers.rbegin(), consumers.rend());
      if (!consumers.empty()) {
        Root root{i, {}};
        for (const auto& [consumer, cell] : consumers) {
          root.gradients.push_back(cell);
        }
        roots_.push_back(std::move(root));
      }
    }
    for (std::size_t i = 0; i < chunk.inputs.size(); ++i) {
      for (const BufferId id : site.program.writes_of(site.task)) {
        const Buffer& buffer = site.program.buffer(id);
        if (buffer.kind == Buffer::Kind::gradient && buffer.value == chunk.inputs[i]) {
          wanted_.push_back({&site.cell<TensorCell>(id), i});
        }
      }
    }
    return {};
  }

 protected:
  // Fills roots' edges_ and gradients_, and forgets what they come from.
  void collect() {
    for (const Root& root : roots_) {
      torch::autograd::Edge& output = saved_->outputs[root.position];
      if (!output.is_valid()) {  // nothing below it to differentiate
        continue;
      }
      at::Tensor gradient = root.gradients[0]->tensor;
      for (std::size_t i = 1; i < root.gradients.size(); ++i) {
        gradient = i == 1 ? gradient.add(root.gradients[i]->tensor)
                          : gradient.add_(root.gradients[i]->tensor);
      }
      edges_.push_back(std::move(output));
      gradients_.push_back(std::move(gradient));
    }
    if (saved_->loss.defined()) {
      edges_.push_back(torch::autograd::impl::gradient_edge(saved_->loss));
      gradients_.push_back(at::empty(saved_->loss.sizes(), saved_->loss.options()));
      fill_with_inverse(count_->number, gradients_.back());
    }
    saved_->outputs.clear();
    saved_->loss.reset();
  }

  // A view of a received gradient would change when its place in the arena is used again.
  at::Tensor outlive_arena(at::Tensor gradient) const {
    for (const Root& root : roots_) {
      for (const TensorCell* const received : root.gradients) {
        if (received->in_arena && gradient.is_alias_of(received->tensor)) {
          return gradient.clone();
        }
      }
    }
    return gradient;
  }

  void give(TensorCell& cell, at::Tensor gradient, const at::Tensor& leaf) const {
    cell.tensor =
        gradient.defined() ? outlive_arena(std::move(gradient)) : at::zeros_like(leaf.detach());
  }

  void drop() {
    edges_.clear();
    gradients_.clear();
  }

  struct Root {
    std::size_t position;  // in Chunk::outputs
    std::vector<const TensorCell*> gradients;
  };
  struct Wanted {
    TensorCell* cell;
    std::size_t position;  // in Chunk::inputs
  };
  ChainMemory memory_;
  const ScalarCell* count_;
  SavedCell* saved_ = nullptr;
  std::vector<Root> roots_;
  std::vector<Wanted> wanted_;
  torch::autograd::edge_list edges_;  // empty between runs, as gradients_
  Tensors gradients_;
};

class BackwardTask final : public BackwardBase {
 public:
  using BackwardBase::BackwardBase;

 private:
  void enqueue(const Launch& launch) override {
    const Charge charge(MemoryKind::activation);
    memory_.enter(launch);
    collect();
    if (!edges_.empty()) {
      // Leaves take their gradients: parameters add to the flat buffers, inputs keep theirs.
      torch::autograd::Engine::get_default_engine().execute(
          edges_, gradients_, /*keep_graph=*/false, /*create_graph=*/false,
          /*accumulate_grad=*/true);
    }
    edges_.clear();
    for (const Wanted& wanted : wanted_) {
      at::Tensor& leaf = saved_->inputs[wanted.position];
      give(*wanted.cell, std::move(leaf.mutable_grad()), leaf);
    }
    drop();
  }
};

class BackwardInputTask final : public BackwardBase {
 public:
  using BackwardBase::BackwardBase;

 private:
  void enqueue(const Launch& launch) override {
    const Charge charge(MemoryKind::activation);
    memory_.enter(launch);
    collect();
    torch::autograd::edge_list leaves;
    for (const Wanted& wanted : wanted_) {
      leaves.push_back(torch::autograd::impl::gradient_edge(saved_->inputs[wanted.position]));
    }
    leaves.insert(leaves.end(), saved_->unwanted.begin(), saved_->unwanted.end());
    Tensors gradients = backward_input(edges_, gradients_, leaves, saved_->rest, saved_->ends);
    saved_->ends.clear();
    saved_->unwanted.clear();
    for (at::Tensor& gradient : saved_->rest.gradients) {
      gradient = outlive_arena(std::move(gradient));
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      give(*wanted_[i].cell, std::move(gradients[i]), saved_->inputs[wanted_[i].position]);
    }
    drop();
  }
};

class BackwardWeightTask final : public ReleasingTask {
 public:
  BackwardWeightTask(const Site& site, SavedCell& saved)
      : ReleasingTask(site), memory_(site), saved_(saved) {}

 private:
  void enqueue(const Launch& launch) override {
    const Charge charge(MemoryKind::activation);
    memory_.enter(launch);
    backward_weight(saved_.rest);
  }

  ChainMemory memory_;
  SavedCell& saved_;
};

template <typename Kind>
MadeTask make(const Site& site) {
  auto task = std::make_unique<Kind>(site);
  PIPER_TRY(task->resolve(site));
  return task;
}

}  // namespace

MadeTask make_backward(const Site& site) {
  return make<BackwardTask>(site);
}

MadeTask make_backward_input(const Site& site) {
  return make<BackwardInputTask>(site);
}

MadeTask make_backward_weight(const Site& site) {
  if (SavedCell* const saved = site.find<SavedCell>(Buffer::Kind::saved); saved != nullptr) {
    return std::make_unique<BackwardWeightTask>(site, *saved);
  }
  return misfit(site, "no buffer for the saved graph");
}

}  // namespace piper
