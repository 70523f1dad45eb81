// The backward pass in two halves, on any autograd graph, each a single call of the engine.
//
//   before:  outputs --> ... n ... --> input       n also leads to parameters
//                              '--> parameter
//
// BI runs the nodes that lead to an input, and takes the gradient that arrives at each node of the
// frontier: those that lead to an input and also have an edge towards parameters only. Then the
// frontier's edges towards the inputs are cut, so that BW, from the frontier on, meets parameters
// alone. Nothing is computed twice, and a weight that is used twice on a path counts twice.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <cstdint>
#include <vector>

namespace piper {

// What BW needs. Owns the frontier, and with it the tensors that the frontier saved.
struct WeightGradients {
  std::vector<torch::autograd::Edge> roots;
  std::vector<at::Tensor> gradients;
};

// Where the first half ends in a graph that leads to parameters alone: at lookups of a parameter's
// rows, as an embedding is, or at `roots` themselves where it has none.
std::vector<torch::autograd::Edge> lookups(const std::vector<torch::autograd::Edge>& roots);

// Gradients of `inputs` (leaves), undefined where an input is not used; `outputs` are where the
// graph begins. `later` is what remains. BI goes on to `ends` too, which lead to parameters alone,
// as the output of an embedding does: so the first stage's halves are as long as those of others.
std::vector<at::Tensor> backward_input(const std::vector<at::Tensor>& outputs,
                                       const std::vector<at::Tensor>& gradients,
                                       const std::vector<at::Tensor>& inputs,
                                       WeightGradients& later,
                                       const std::vector<torch::autograd::Edge>& ends = {});

// The same for a graph whose tensors are gone, by the edges that lead to it and that it ends at.
std::vector<at::Tensor> backward_input(const std::vector<torch::autograd::Edge>& outputs,
                                       const std::vector<at::Tensor>& gradients,
                                       const std::vector<torch::autograd::Edge>& inputs,
                                       WeightGradients& later,
                                       const std::vector<torch::autograd::Edge>& ends = {});

// Adds to the .grad of every parameter.
void backward_weight(WeightGradients& rest);

}  // namespace piper
