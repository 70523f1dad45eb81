#include "runtime/train/verify.h"

#include <algorithm>

#include "runtime/data/loader.h"
#include "runtime/exec/create_engine.h"
#include "runtime/models/find_model.h"
#include "runtime/train/compare.h"
#include "runtime/train/reference.h"
#include "runtime/train/scaled_loss.h"
#include "runtime/train/weights.h"

namespace piper {
namespace {

// What the single-device program computes in one go. In bfloat16: the run's micro-batches, since
// rounding depends on the rows that are computed together.
std::vector<Rows> cuts_of(const Config& config) {
  const Rows whole{0, config.training.global_batch_size};
  if (config.training.dtype != DType::bfloat16) {
    return {whole};
  }
  std::vector<Rows> cuts;
  const std::uint32_t parts = config.mesh.size("dp");
  const auto microbatches = static_cast<std::uint32_t>(config.training.microbatches);
  for (std::uint32_t part = 0; part < parts; ++part) {
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      cuts.push_back(cut_rows(cut_rows(whole, parts, part), microbatches, m));
    }
  }
  return cuts;
}

// Each rank's block of a global batch.
StepInput feed(const Plan& plan, const Batch& global, std::int64_t step, double factor) {
  StepInput input;
  input.step = step;
  input.lr_factor = factor;
  input.batch = [&plan, &global](std::uint32_t rank) { return block_of(plan, rank, global); };
  return input;
}

class Parity {
 public:
  Parity(const Job& job, Engine& engine, Reference& reference)
      : job_(job), engine_(engine), reference_(reference), cuts_(cuts_of(job.config)) {
    comparison_.tolerance = tolerance_of(job.config.training.dtype, job.config.optimizer.name);
    for (const Parameter& parameter : job.model.parameters) {
      comparison_.parameters.push_back({parameter.name, {}, {}, {}});
    }
  }

  // Both must start alike: weights are a function of seed and name, or come from the same file.
  void compare_initial() {
    for_each_home([&](ParameterId id, std::uint32_t rank) {
      if (!bitwise_equal(engine_.parameter(rank, id), reference_.parameter(id))) {
        fault(id, "initial weights on rank " + std::to_string(rank) + " differ from one device's");
      }
    });
    for (std::uint32_t i = 0; i < job_.model.parameters.size(); ++i) {
      if (!home_of(static_cast<ParameterId>(i))) {
        fault(static_cast<ParameterId>(i), "no rank holds it");
      }
    }
  }

  Status one_step(std::int64_t step, const Batch& batch) {
    const Config& config = job_.config;
    const std::int64_t update = updates_ + 1;
    const double factor = lr_factor(config.lr_scheduler, update, config.training.steps);
    PIPER_ASSIGN(const StepResult evaluated,
                 engine_.evaluate_step(feed(job_.plans.evaluate, batch, update, 1)));
    PIPER_ASSIGN(const StepResult run,
                 engine_.train_step(feed(job_.plans.train, batch, update, factor)));
    const Reference::Gradients one = reference_.gradients(update, batch, cuts_);
    if (!run.finite) {
      return fail(error("run.non_finite", "step " + std::to_string(step) + ": loss " +
                                              std::to_string(run.loss) + ", gradient norm " +
                                              std::to_string(run.grad_norm)));
    }
    if (one.tokens > 0) {  // else there is no loss
      comparison_.evaluation.add(relative(evaluated.loss, reference_.loss(batch)), 0, step);
      comparison_.loss.add(relative(run.loss, one.loss), 0, step);
    }
    comparison_.norm.add(relative(run.grad_norm, one.norm), 0, step);
    compare_gradients(step, one.tensors);
    if (one.tokens > 0) {
      updates_ = update;
      if (comparison_.tolerance.same_gradients) {
        reference_.update(update, factor, run.grad_norm, gradients_of_run());
      } else {
        reference_.update(update, factor, one.norm, one.tensors);
      }
    }
    compare_weights(step);
    take_over();
    return {};
  }

  VerifyReport report(std::int64_t steps) const {
    const Config& config = job_.config;
    std::string head = "piper verify: " + job_.model.name;
    for (const auto& [axis, size] : config.mesh.axes) {
      head += ", " + axis + " " + std::to_string(size);
    }
    head += ", " + std::to_string(config.training.microbatches) + " micro-batches, " +
            std::string(to_string(config.training.dtype)) +
            (config.optimizer.name == OptimizerName::adamw ? ", adamw; " : ", sgd; ") +
            std::to_string(steps) + (steps == 1 ? " step of " : " steps of ") +
            std::to_string(config.training.global_batch_size) + " rows\n";
    return {comparison_.passed(), head + comparison_.text()};
  }

 private:
  static double relative(double a, double b) {
    const double difference = std::abs(a - b);
    return difference == 0 ? 0 : difference / std::abs(b);
  }

  void fault(ParameterId id, std::string what) {
    comparison_.parameters[index(id)].faults.push_back(std::move(what));
  }

  template <typename Visit>
  void for_each_home(Visit visit) const {
    for (std::uint32_t i = 0; i < job_.model.parameters.size(); ++i) {
      for (const std::uint32_t rank : engine_.homes(static_cast<ParameterId>(i))) {
        visit(static_cast<ParameterId>(i), rank);
      }
    }
  }

  std::optional<std::uint32_t> home_of(ParameterId id) const {
    const std::vector<std::uint32_t> homes = engine_.homes(id);
    return homes.empty() ? std::nullopt : std::optional(homes.front());
  }

  void compare_gradients(std::int64_t step, const std::vector<at::Tensor>& expected) {
    for_each_home([&](ParameterId id, std::uint32_t rank) {
      if (job_.model.parameter(id).frozen) {
        return;
      }
      const at::Tensor gradient = engine_.gradient(rank, id);
      if (!gradient.defined()) {
        fault(id, "no gradient on rank " + std::to_string(rank));
        return;
      }
      comparison_.parameters[index(id)].gradient.add(relative_error(gradient, expected[index(id)]),
                                                     rank, step);
    });
  }

  std::vector<at::Tensor> gradients_of_run() const {
    std::vector<at::Tensor> gradients(job_.model.parameters.size());
    for_each_home([&](ParameterId id, std::uint32_t rank) {
      if (!job_.model.parameter(id).frozen && !gradients[index(id)].defined()) {
        gradients[index(id)] = engine_.gradient(rank, id);
      }
    });
    return gradients;
  }

  void compare_weights(std::int64_t step) {
    for_each_home([&](ParameterId id, std::uint32_t rank) {
      const at::Tensor weight = engine_.parameter(rank, id);
      const at::Tensor master = engine_.master(rank, id);
      const std::string at =
          " on rank " + std::to_string(rank) + " after step " + std::to_string(step);
      comparison_.parameters[index(id)].update.add(relative_error(master, reference_.master(id)),
                                                   rank, step);
      if (job_.model.parameter(id).frozen && !bitwise_equal(weight, reference_.parameter(id))) {
        fault(id, "frozen, but changed" + at);
      }
      if (!bitwise_equal(weight, master.to(weight.scalar_type()))) {
        fault(id, "the weight is not its rounded master" + at);
      }
      if (!bitwise_equal(weight, engine_.parameter(*home_of(id), id))) {
        fault(id, "differs from rank " + std::to_string(*home_of(id)) + "'s replica" + at);
      }
    });
  }

  void take_over() {
    for (std::uint32_t i = 0; i < job_.model.parameters.size(); ++i) {
      const auto id = static_cast<ParameterId>(i);
      if (const auto home = home_of(id)) {
        reference_.set(id, engine_.master(*home, id));
      }
    }
  }

  const Job& job_;
  Engine& engine_;
  Reference& reference_;
  std::vector<Rows> cuts_;
  std::int64_t updates_ = 0;  // made so far: a step without a counted label makes none
  Comparison comparison_;
};

// Where all rows count equally many labels, ignores the first r / rows of row r's.
void make_uneven(at::Tensor labels) {
  const std::int64_t rows = labels.size(0);
  const at::Tensor flat = labels.view({rows, -1});
  std::vector<std::int64_t> counted;
  for (std::int64_t r = 0; r < rows; ++r) {
    counted.push_back(counted_labels(flat[r]));
  }
  if (std::any_of(counted.begin(), counted.end(), [&](auto n) { return n != counted[0]; })) {
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    flat[r].narrow(0, 0, r * flat.size(1) / rows).fill_(kIgnoredLabel);
  }
}

Expected<VerifyReport> verify_steps(
    const Job& job, const VerifyOptions& options,
    const std::function<Expected<Batch>(std::int64_t step)>& batch) {
  PIPER_ASSIGN(const std::unique_ptr<Engine> engine,
               create_engine(job, [&]() -> Expected<LiveModel> {
                 PIPER_ASSIGN(LiveModel model, build_model(job.config, /*measure=*/false));
                 if (options.break_scaling != 1) {
                   scale_gradients(model, std::make_shared<const double>(options.break_scaling));
                 }
                 return model;
               }));
  PIPER_ASSIGN(const std::unique_ptr<Reference> reference, Reference::create(job.config));
  PIPER_TRY(load_initial_weights(job, *engine, reference.get()));
  engine->keep_gradients(true);

  Parity parity(job, *engine, *reference);
  parity.compare_initial();
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    PIPER_ASSIGN(const Batch global, batch(step));
    PIPER_TRY(parity.one_step(step, global));
  }
  return parity.report(options.steps);
}

}  // namespace

Expected<VerifyReport> verify_parity(const Job& job, const VerifyOptions& options,
                                     const GlobalBatch& batch) {
  return verify_steps(job, options, batch);
}

Expected<VerifyReport> verify_parity(const Job& job, const VerifyOptions& options) {
  PIPER_ASSIGN(std::unique_ptr<RowSource> rows, load_dataset(job.config, job.model));
  const std::int64_t global_rows = job.config.training.global_batch_size;
  Loader loader(job.model, std::move(rows), global_rows, job.config.training.seed);
  return verify_steps(job, options, [&](std::int64_t step) {
    auto batch = loader.training(step, {0, global_rows}, loader.all_inputs());
    if (batch) {
      make_uneven(batch->at(job.model.labels));
    }
    return batch;
  });
}

}  // namespace piper
