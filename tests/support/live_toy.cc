#include "tests/support/live_toy.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/pipeline.h"

namespace piper::test {

ModelGraph toy_graph(const ToyShape& shape, DType dtype) {
  ModelGraph graph = toy_model(shape);
  for (Value& value : graph.values) {
    value.dtype = is_floating(value.dtype) ? dtype : value.dtype;
  }
  for (Parameter& parameter : graph.parameters) {
    parameter.dtype = dtype;
  }
  return graph;
}

LiveModel live_toy(const ToyShape& shape, DType dtype) {
  LiveModel model;
  model.graph = toy_graph(shape, dtype);
  for (std::size_t i = 0; i < model.graph.parameters.size(); ++i) {
    model.parameters.push_back(std::make_shared<at::Tensor>());
    model.inits.push_back(Init::normal(0.3));
  }
  for (const Region& region : model.graph.regions) {
    const ParameterHandle w(model.parameters[index(region.parameters[0])]);
    if (model.regions.empty()) {
      model.regions.push_back([w](const Tensors& in) { return Tensors{at::embedding(w, in[0])}; });
    } else if (region.outputs[0] == model.graph.loss) {
      model.regions.push_back([w](const Tensors& in) {
        return Tensors{at::cross_entropy_loss(at::linear(in[0], w).flatten(0, 1), in[1].flatten(),
                                              {}, at::Reduction::Sum, -100)};
      });
    } else {
      model.regions.push_back(
          [w](const Tensors& in) { return Tensors{in[0] + at::tanh(at::linear(in[0], w))}; });
    }
  }
  return model;
}

Batch toy_batch(const ModelGraph& model, std::int64_t rows, std::uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const std::int64_t seq = model.values[0].shape[1].fixed;
  const at::Tensor tokens = at::randint(0, 16, {rows, seq}, generator, at::kLong);
  const at::Tensor labels = at::randint(0, 16, {rows, seq}, generator, at::kLong);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t counted = row == rows - 1 ? 0 : 1 + row % seq;
    labels[row].narrow(0, counted, seq - counted).fill_(-100);
  }
  return {{ValueId{0}, tokens}, {model.labels, labels}};
}

Expected<Job> toy_job(const ToyJob& options) {
  Job job;
  job.model = toy_graph(options.shape, options.dtype);
  job.config = toy_config(options.pp, options.dp, options.microbatches);
  job.config.training.dtype = options.dtype;
  job.config.optimizer.name = OptimizerName::sgd;
  job.config.optimizer.lr = 0.1;
  std::vector<Proposal> proposals;
  if (options.pp > 1 || options.split_backward) {
    proposals.push_back(toy_pipeline(job.config, job.model));
  }
  if (options.split_backward) {
    Proposal& pipeline = proposals.back();
    pipeline.directives.push_back({SplitBackwardDirective{}, pipeline.from});
    for (Directive& directive : pipeline.directives) {
      if (auto* const chain = std::get_if<OrderChainDirective>(&directive.what)) {
        // Every weight gradient one action later than it could be.
        std::vector<Action> actions;
        std::vector<Action> due;
        for (Action action : chain->actions) {
          const bool backward = action.pass == Pass::backward;
          action.pass = backward ? Pass::backward_input : action.pass;
          actions.push_back(action);
          actions.insert(actions.end(), due.begin(), due.end());
          due.clear();
          if (backward) {
            due = {{action.stage, action.microbatch, Pass::backward_weight}};
          }
        }
        actions.insert(actions.end(), due.begin(), due.end());
        chain->actions = actions;
      }
    }
  }
  PIPER_ASSIGN(job.plans, plan(job.config, job.model, proposals));
  return job;
}

StepInput feed(const Plan& plan, const Batch& batch, std::int64_t step) {
  StepInput input;
  input.step = step;
  input.batch = [&plan, &batch](std::uint32_t rank) {
    const Plan::Seat seat = plan.seat(rank);
    const auto parts = static_cast<std::uint32_t>(plan.programs[seat.program].ranks.size());
    const Rows block = cut_rows({0, plan.global_rows}, parts, seat.coordinate);
    Batch mine;
    for (const auto& [id, tensor] : batch) {
      mine.emplace(id, tensor.narrow(0, block.begin, block.count));
    }
    return mine;
  };
  return input;
}

OneDevice one_device(const LiveModel& model, const std::vector<at::Tensor>& parameters,
                     const Batch& batch) {
  const ModelGraph& graph = model.graph;
  OneDevice result;
  std::vector<at::Tensor> trained;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    *model.parameters[i] = parameters[i].detach().clone();
    if (!graph.parameters[i].frozen) {
      model.parameters[i]->set_requires_grad(true);
      trained.push_back(*model.parameters[i]);
    }
  }
  std::vector<at::Tensor> values(graph.values.size());
  for (const auto& [id, tensor] : batch) {
    values[index(id)] = tensor;
  }
  for (std::size_t r = 0; r < graph.regions.size(); ++r) {
    Tensors inputs;
    for (const ValueId id : graph.regions[r].inputs) {
      inputs.push_back(values[index(id)]);
    }
    values[index(graph.regions[r].outputs[0])] = model.regions[r](inputs)[0];
  }
  result.tokens = batch.at(graph.labels).ne(-100).sum().item<std::int64_t>();
  const at::Tensor loss = values[index(graph.loss)] / result.tokens;
  result.loss = loss.item<double>();
  std::vector<at::Tensor> gradients =
      torch::autograd::grad({loss}, trained, {}, std::nullopt, false, /*allow_unused=*/true);
  for (std::size_t t = 0; t < trained.size(); ++t) {
    gradients[t] = gradients[t].defined() ? gradients[t] : at::zeros_like(trained[t]).detach();
  }
  double squares = 0;
  for (std::size_t i = 0, t = 0; i < parameters.size(); ++i) {
    if (graph.parameters[i].frozen) {
      result.gradients.emplace_back();
      continue;
    }
    result.gradients.push_back(gradients[t++]);
    squares += result.gradients.back().to(at::kDouble).square().sum().item<double>();
  }
  result.norm = std::sqrt(squares);
  return result;
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const double scale = b.abs().max().item<double>();
  const double worst = (a - b).abs().max().item<double>();
  return scale == 0 ? worst : worst / scale;
}

}  // namespace piper::test
