#include "runtime/tasks/forward.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>

#include "runtime/autograd/dropout.h"
#include "runtime/tasks/chain_memory.h"
#include "runtime/tasks/kernels.h"

namespace piper {
namespace {

constexpr std::uint32_t kNowhere = 0xffffffff;

// A region with its arguments and results as places among the chunk's values.
struct Step {
  const RegionFunction* function;
  RegionId region;
  std::vector<std::uint32_t> arguments, results;
  bool trains;                           // some parameter of it is not frozen
  std::vector<std::uint32_t> last_uses;  // places that nothing after this step reads
};

// A forward, or a recomputation: that has no outputs but what the graph keeps, and its loss has
// been counted.
class ForwardTask final : public ReleasingTask {
 public:
  explicit ForwardTask(const Site& site)
      : ReleasingTask(site),
        memory_(site),
        recomputes_(site.task.op == Op::recompute),
        saved_(site.find<SavedCell>(Buffer::Kind::saved)),
        loss_sum_(site.find<ScalarCell>(Buffer::Kind::loss_sum)),
        has_loss_(site.chunk().has_loss),
        dropout_{site.plan.kind == Plan::Kind::train, site.config.training.seed, 0,
                 rows_of(site.plan, site.program, site.coordinate, site.task.microbatch).begin} {}

  Status resolve(const Site& site) {
    const Chunk& chunk = site.chunk();
    std::map<ValueId, std::uint32_t> places;
    const auto place = [&](ValueId value) {
      return places.emplace(value, static_cast<std::uint32_t>(places.size())).first->second;
    };
    for (const ValueId value : chunk.inputs) {
      PIPER_TRY(add_input(site, value, place(value)));
    }
    for (const RegionId id : chunk.regions) {
      const Region& region = site.model().region(id);
      Step step{&site.rank.model.regions[index(id)], id, {}, {}, false, {}};
      for (const ValueId value : region.inputs) {
        if (!places.contains(value)) {
          return misfit(site, "region " + std::to_string(index(id)) + " reads value " +
                                  std::to_string(index(value)) + ", which nothing delivers");
        }
        step.arguments.push_back(places.at(value));
      }
      for (const ValueId value : region.outputs) {
        step.results.push_back(place(value));
      }
      for (const ParameterId parameter : region.parameters) {
        if (!site.rank.model.parameters[index(parameter)]->defined()) {
          return misfit(site, "parameter " + site.model().parameter(parameter).name +
                                  " has no home on this rank");
        }
        step.trains = step.trains || !site.model().parameter(parameter).frozen;
      }
      steps_.push_back(std::move(step));
    }
    for (const ValueId& value : chunk.outputs) {
      if (value == site.model().loss) {
        continue;
      }
      TensorCell* const cell = site.find<TensorCell>(Buffer::Kind::activation, value);
      if ((cell == nullptr) != recomputes_ || !places.contains(value)) {
        return misfit(site, "no buffer for value " + std::to_string(index(value)));
      }
      outputs_.push_back(
          {cell, places.at(value), static_cast<std::size_t>(&value - chunk.outputs.data())});
    }
    if (has_loss_) {
      if ((loss_sum_ == nullptr) != recomputes_ || !places.contains(site.model().loss)) {
        return misfit(site, "it has the loss, but no buffer for it");
      }
      loss_ = places.at(site.model().loss);
    }
    const std::vector<Task>& tasks = site.program.tasks;
    splits_ = saved_ != nullptr && std::any_of(tasks.begin(), tasks.end(), [&](const Task& task) {
                return task.op == Op::backward_input && task.chunk == site.task.chunk &&
                       task.microbatch == site.task.microbatch;
              });
    values_.resize(places.size());
    output_count_ = chunk.outputs.size();
    find_last_uses();
    return {};
  }

 private:
  struct Input {
    const TensorCell* cell;
    std::uint32_t place;
    bool leaf;  // the backward wants its gradient
  };
  struct Output {
    TensorCell* cell;  // null: recomputed
    std::uint32_t place;
    std::size_t position;  // in Chunk::outputs
  };

  Status add_input(const Site& site, ValueId value, std::uint32_t place) {
    const TensorCell* cell = nullptr;
    for (const BufferId id : site.program.reads_of(site.task)) {
      const Buffer& buffer = site.program.buffer(id);
      if (buffer.value == value &&
          (buffer.kind == Buffer::Kind::input || buffer.kind == Buffer::Kind::activation)) {
        cell = &site.cell<TensorCell>(id);
      }
    }
    if (cell == nullptr) {
      return misfit(site, "no buffer for input value " + std::to_string(index(value)));
    }
    // Its own gradient of the value: such a buffer is made exactly where one is wanted.
    const auto& buffers = site.program.buffers;
    const bool wanted = std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& buffer) {
      return buffer.kind == Buffer::Kind::gradient && buffer.value == value &&
             buffer.chunk == site.task.chunk;
    });
    inputs_.push_back({cell, place, saved_ != nullptr && wanted});
    return {};
  }

  // Values that neither leave the chunk nor are read again end at once, as in a plain program.
  void find_last_uses() {
    std::vector<std::uint32_t> last(values_.size(), kNowhere);
    for (std::uint32_t s = 0; s < steps_.size(); ++s) {
      for (const auto* places : {&steps_[s].results, &steps_[s].arguments}) {
        for (const std::uint32_t place : *places) {
          last[place] = s;
        }
      }
    }
    for (const Output& output : outputs_) {
      last[output.place] = kNowhere;
    }
    if (has_loss_) {
      last[loss_] = kNowhere;
    }
    for (std::uint32_t place = 0; place < last.size(); ++place) {
      if (last[place] != kNowhere) {
        steps_[last[place]].last_uses.push_back(place);
      }
    }
  }

  void enqueue(const Launch& launch) override {
    dropout_.step = launch.step;
    const InDropoutContext dropout(dropout_);
    const c10::AutoGradMode grad_mode(saved_ != nullptr);
    const Charge charge(MemoryKind::activation);
    memory_.enter(launch);
    if (saved_ != nullptr) {
      saved_->inputs.resize(inputs_.size());
      saved_->outputs.resize(output_count_);
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      at::Tensor& value = values_[input.place];
      value = input.cell->tensor;
      if (input.leaf) {
        value = value.detach().set_requires_grad(true);
        saved_->inputs[i] = value;
      }
    }
    for (const Step& region : steps_) {
      run(region);
    }
    for (const Output& output : outputs_) {
      give(output);
    }
    if (has_loss_) {
      if (!recomputes_) {
        add_number(values_[loss_], loss_sum_->number);
      }
      if (saved_ != nullptr && values_[loss_].requires_grad()) {
        saved_->loss = values_[loss_];
      }
    }
    for (at::Tensor& value : values_) {
      value.reset();
    }
  }

  void run(const Step& step) {
    arguments_.clear();
    for (const std::uint32_t place : step.arguments) {
      arguments_.push_back(values_[place]);
    }
    const bool is_first = std::none_of(arguments_.begin(), arguments_.end(),
                                       [](const at::Tensor& t) { return t.requires_grad(); });
    const bool goes_through = is_first && splits_ && step.trains && go_to_arguments();
    Tensors results = (*step.function)(arguments_);
    arguments_.clear();
    if (results.size() != step.results.size()) {
      throw TaskFailure("run.region", "region " + std::to_string(index(step.region)) +
                                          ": expected " + std::to_string(step.results.size()) +
                                          " results, got " + std::to_string(results.size()));
    }
    if (is_first && splits_ && !goes_through) {
      end_at_lookups(results);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      values_[step.results[i]] = std::move(results[i]);
    }
    for (const std::uint32_t place : step.last_uses) {
      values_[place].reset();
    }
  }

  // BI goes through a region whose inputs want no gradient as through any other, so that BW needs
  // no parameters there either: these may be gone by then. False: nothing that could have a
  // gradient.
  bool go_to_arguments() {
    bool any = false;
    for (at::Tensor& argument : arguments_) {
      if (argument.is_floating_point()) {
        argument = argument.detach().set_requires_grad(true);
        saved_->unwanted.push_back(torch::autograd::impl::gradient_edge(argument));
        any = true;
      }
    }
    return any;
  }

  void end_at_lookups(const Tensors& results) {
    std::vector<torch::autograd::Edge> roots;
    for (const at::Tensor& result : results) {
      if (result.requires_grad()) {
        roots.push_back(torch::autograd::impl::gradient_edge(result));
      }
    }
    const std::vector<torch::autograd::Edge> ends = lookups(roots);
    saved_->ends.insert(saved_->ends.end(), ends.begin(), ends.end());
  }

  void give(const Output& output) {
    const at::Tensor& value = values_[output.place];
    const bool graph = value.requires_grad();
    if (graph) {
      saved_->outputs[output.position] = torch::autograd::impl::gradient_edge(value);
    }
    if (recomputes_) {
      return;
    }
    output.cell->tensor = graph ? value.detach() : value;
    // A view of a received value would change when its place in the arena is used again.
    for (const Input& input : inputs_) {
      if (input.cell->in_arena && value.is_alias_of(input.cell->tensor)) {
        output.cell->tensor = value.detach().clone();
      }
    }
  }

  ChainMemory memory_;
  std::vector<Input> inputs_;
  std::vector<Step> steps_;
  std::vector<Output> outputs_;
  bool recomputes_;
  SavedCell* saved_;      // null: nothing to differentiate
  ScalarCell* loss_sum_;  // null: recomputed, or no loss
  bool has_loss_;
  bool splits_ = false;  // it leaves a graph, and the backward is BI and BW
  DropoutContext dropout_;
  std::uint32_t loss_ = kNowhere;
  std::size_t output_count_ = 0;
  Tensors values_, arguments_;  // empty between runs
};

}  // namespace

MadeTask make_forward(const Site& site) {
  auto task = std::make_unique<ForwardTask>(site);
  PIPER_TRY(task->resolve(site));
  return task;
}

MadeTask make_recompute(const Site& site) {
  if (site.find<SavedCell>(Buffer::Kind::saved) == nullptr) {
    return misfit(site, "no buffer for the saved graph");
  }
  return make_forward(site);
}

}  // namespace piper
