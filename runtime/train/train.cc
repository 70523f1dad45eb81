#include "runtime/train/train.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/folders.h"
#include "core/verify/memory.h"
#include "runtime/checkpoint/hf.h"
#include "runtime/metrics/display.h"
#include "runtime/metrics/metrics_file.h"
#include "runtime/optim/optimizer.h"
#include "runtime/train/ending.h"
#include "runtime/train/guarded.h"
#include "runtime/train/interrupt.h"
#include "runtime/train/profile.h"
#include "runtime/train/weights.h"

namespace piper {
namespace {

constexpr const char* kNotFinite = "run.non_finite";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::int64_t> planned_peaks(const Plan& plan, const ModelGraph& model,
                                        const Engine& engine) {
  std::vector<std::int64_t> peaks;
  for (const std::uint32_t rank : engine.local_ranks()) {
    const Plan::Seat seat = plan.seat(rank);
    peaks.push_back(peak_bytes(plan, model, seat.program, seat.coordinate));
  }
  return engine.gather(peaks);
}

// Delivers rows of the loader to the local ranks of a plan.
class Feed {
 public:
  Feed(const Plan& plan, const std::vector<std::uint32_t>& ranks) : ranks_(ranks) {
    for (const std::uint32_t rank : ranks) {
      inputs_.push_back(inputs_of(plan, rank));
      blocks_.push_back(block_of(plan, rank));
    }
  }

  using Batches = std::map<std::uint32_t, Batch>;  // by rank

  Expected<Batches> training(Loader& loader, std::int64_t step) const {
    return each(
        [&](Rows block, const auto& inputs) { return loader.training(step, block, inputs); });
  }
  Expected<Batches> evaluation(const Loader& loader, std::int64_t batch) const {
    return each(
        [&](Rows block, const auto& inputs) { return loader.evaluation(batch, block, inputs); });
  }

 private:
  template <typename Read>
  Expected<Batches> each(Read read) const {
    Batches batches;
    for (std::size_t local = 0; local < ranks_.size(); ++local) {
      PIPER_ASSIGN(batches[ranks_[local]], read(blocks_[local], inputs_[local]));
    }
    return batches;
  }

  std::vector<std::uint32_t> ranks_;
  std::vector<std::vector<ValueId>> inputs_;  // by place in `ranks_`
  std::vector<Rows> blocks_;
};

// One run of `piper train`.
class Run {
 public:
  Run(const Job& job, const TrainOptions& options, Engine& engine, Loader& loader,
      MetricsFile& metrics, Profile& profile, const ModelFiles& files, Display& display,
      Interrupt& interrupt)
      : job_(job),
        options_(options),
        engine_(engine),
        loader_(loader),
        metrics_(metrics),
        profile_(profile),
        files_(files),
        display_(display),
        interrupt_(interrupt),
        feed_(job.plans.train, engine.local_ranks()),
        planned_(planned_peaks(job.plans.train, job.model, engine)) {}

  Expected<TrainSummary> go() {
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t steps = job_.config.training.steps;
    engine_.keep_gradients(!options_.save_gradients.empty());
    Status status;
    for (std::int64_t step = 1; step <= steps && status && !interrupt_.requested(); ++step) {
      status = guarded([&] { return one_step(step); });
    }
    summary_.interrupted = status && interrupt_.requested();
    PIPER_TRY(end(std::move(status)));
    const bool only_first = summary_.steps < 2;
    const double seconds = only_first ? first_.seconds : timed_seconds_;
    summary_.tokens_per_second =
        seconds > 0 ? static_cast<double>(only_first ? first_.tokens : timed_tokens_) / seconds : 0;
    summary_.seconds = seconds_since(start);
    return summary_;
  }

 private:
  // Saves what there is to save, and says where.
  Status end(Status status) {
    const End how = summary_.interrupted                        ? End::interrupted
                    : status                                    ? End::done
                    : status.error().front().code == kNotFinite ? End::not_finite
                                                                : End::failed;
    Ending ending = end_run(job_, engine_, files_, how, summary_.steps);
    if (!status) {
      if (!job_.config.checkpoint.last_save_path.empty()) {
        status.error().back().note(ending.said);
        status.error().insert(status.error().end(), ending.problems.begin(), ending.problems.end());
      }
      return status;
    }
    if (how == End::interrupted) {
      display_.line(ending.said);
    }
    summary_.weights = std::move(ending.weights);
    summary_.problems = std::move(ending.problems);
    return {};
  }

  Status one_step(std::int64_t step) {
    const auto start = std::chrono::steady_clock::now();
    PIPER_ASSIGN(Feed::Batches batches, feed_.training(loader_, step));
    StepInput input;
    input.step = updates_ + 1;
    input.lr_factor = lr_factor(job_.config.lr_scheduler, updates_ + 1, job_.config.training.steps);
    input.batch = [&](std::uint32_t rank) { return std::move(batches[rank]); };
    input.record = profile_.wants(step);
    auto result = engine_.train_step(input);
    if (!result) {
      return unless_interrupted(std::move(result).error());
    }

    StepRecord record = describe(step, input.lr_factor, *result, seconds_since(start));
    report(record);
    const Status followed = after_step(*result, record);
    const Status written = metrics_.write(record);
    PIPER_TRY(followed);
    return written;
  }

  // What is written and evaluated once a step has ended; fills in the record.
  Status after_step(const StepResult& result, StepRecord& record) {
    const std::int64_t step = record.step;
    if (!result.finite && job_.config.training.non_finite == NonFinite::stop) {
      return fail(not_finite(step, result));
    }
    updates_ += result.updated() ? 1 : 0;
    summary_.steps = step;
    if (record.loss) {
      summary_.loss = record.loss;
    } else if (!std::exchange(remarked_, true)) {
      display_.remark(no_tokens(step));
    }
    if (profile_.wants(step)) {
      PIPER_TRY(profile_.write(job_, result));
    }
    if (step == 1 && !options_.save_gradients.empty()) {
      PIPER_TRY(save_gradients(job_, engine_, options_.save_gradients));
      engine_.keep_gradients(false);
    }
    const std::int64_t freq = job_.config.validation.freq;
    const bool last = step == job_.config.training.steps;
    return last || (freq > 0 && step % freq == 0) ? hold_out(record) : Status();
  }

  StepRecord describe(std::int64_t step, double factor, const StepResult& result, double seconds) {
    StepRecord record;
    record.step = step;
    if (result.tokens > 0) {
      record.loss = result.loss;
    }
    record.grad_norm = result.grad_norm;
    record.lr = job_.config.optimizer.lr * factor;
    record.tokens = result.tokens;
    record.seconds = seconds;
    const std::vector<std::int64_t> busy = engine_.gather(result.busy_ns);
    record.bubble =
        1 - 1e-9 * static_cast<double>(std::accumulate(busy.begin(), busy.end(), std::int64_t{0})) /
                (static_cast<double>(busy.size()) * seconds);
    record.updated = result.updated();
    record.peak_bytes = engine_.gather(result.peak_bytes);
    record.planned_peak_bytes = planned_;
    if (step == 1) {
      first_ = record;
    } else {
      timed_seconds_ += seconds;
      timed_tokens_ += result.tokens;
    }
    return record;
  }

  void report(const StepRecord& record) {
    const std::int64_t freq = std::max<std::int64_t>(job_.config.metrics.log_freq, 1);
    const std::int64_t steps = job_.config.training.steps;
    const bool not_finite = !record.updated && record.loss;
    if (record.step % freq == 0 || record.step == 1 || record.step == steps || not_finite) {
      display_.line(step_line(record));
    }
    const double a_step =
        record.step > 1 ? timed_seconds_ / static_cast<double>(record.step - 1) : record.seconds;
    if (record.step < steps) {
      display_.progress(progress_line(record, steps, a_step));
    }
  }

  // A second signal ends the step or evaluation that runs: no error.
  static Status unless_interrupted(Diagnostics errors) {
    return errors.front().code == "run.cancelled" ? Status() : fail(std::move(errors));
  }

  Diagnostic no_tokens(std::int64_t step) {
    const std::int64_t rows = job_.config.training.global_batch_size;
    return warning("data.no_tokens",
                   "expected labels other than -100 in the " + std::to_string(rows) +
                       (rows == 1 ? " row" : " rows") + " of step " + std::to_string(step) +
                       ", got none: the step makes no update, nor will others of that kind",
                   loader_.place_of(step));
  }

  Diagnostic not_finite(std::int64_t step, const StepResult& result) const {
    return error(kNotFinite,
                 "step " + std::to_string(step) + ": expected finite numbers, got loss " +
                     std::to_string(result.loss) + " and gradient norm " +
                     std::to_string(result.grad_norm) + "; the weights are those of step " +
                     std::to_string(step - 1) +
                     " (training.non_finite = \"skip\" goes on without the update)",
                 job_.config.where("training.non_finite"));
  }

  Status hold_out(StepRecord& record) {
    const auto go_on = [&](std::int64_t batch, std::int64_t batches, const HeldOut& sofar) {
      display_.progress(evaluation_line(record.step, batch, batches, sofar.loss), batch == 0);
      return !interrupt_.requested();
    };
    auto evaluated = evaluate(job_, loader_, engine_, job_.config.validation.steps, go_on);
    if (!evaluated) {
      return unless_interrupted(std::move(evaluated).error());
    }
    const HeldOut& held_out = *evaluated;
    if (held_out.whole && held_out.tokens > 0) {
      record.held_out_loss = held_out.loss;
      char loss[32];
      std::snprintf(loss, sizeof loss, "%.4f", held_out.loss);
      display_.line("step " + std::to_string(record.step) + "  held-out loss " + loss + "  (" +
                    grouped(held_out.tokens) + " tokens)");
    }
    if (record.step == job_.config.training.steps) {
      summary_.held_out_loss = record.held_out_loss;
    }
    return {};
  }

  const Job& job_;
  const TrainOptions& options_;
  Engine& engine_;
  Loader& loader_;
  MetricsFile& metrics_;
  Profile& profile_;
  const ModelFiles& files_;  // beside the weights that are saved
  Display& display_;
  Interrupt& interrupt_;
  Feed feed_;
  std::vector<std::int64_t> planned_;
  TrainSummary summary_;
  StepRecord first_;
  std::int64_t updates_ = 0;  // made so far: what the optimizer and the learning rate count
  bool remarked_ = false;     // a step without counted labels
  double timed_seconds_ = 0;  // of the steps after the first
  std::int64_t timed_tokens_ = 0;
};

}  // namespace

Expected<HeldOut> evaluate(const Job& job, Loader& loader, Engine& engine,
                           std::int64_t most_batches, const GoOn& go_on) {
  const Feed feed(job.plans.evaluate, engine.local_ranks());
  std::int64_t batches = loader.evaluation_batches();
  if (most_batches > 0) {
    batches = std::min(batches, most_batches);
  }
  HeldOut total;
  double sum = 0;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    if (go_on && !go_on(batch, batches, total)) {
      total.whole = false;
      break;
    }
    if (loader.evaluation_tokens(batch) == 0) {
      continue;
    }
    PIPER_ASSIGN(Feed::Batches rows, feed.evaluation(loader, batch));
    StepInput input;
    input.step = batch + 1;
    input.batch = [&](std::uint32_t rank) { return std::move(rows[rank]); };
    PIPER_ASSIGN(const StepResult result, engine.evaluate_step(input));
    sum += result.loss * static_cast<double>(result.tokens);
    total.tokens += result.tokens;
    total.loss = total.tokens > 0 ? sum / static_cast<double>(total.tokens) : 0;
  }
  return total;
}

Expected<TrainSummary> train(const Job& job, const TrainOptions& options,
                             const EngineFactory& create) {
  const Config& config = job.config;
  PIPER_ASSIGN(std::unique_ptr<RowSource> rows, load_dataset(config, job.model));
  for (const std::string& file :
       {config.metrics.file, config.profiling.trace, options.save_costs, options.save_gradients}) {
    PIPER_TRY(file.empty() ? Status() : make_parents(file));
  }
  PIPER_ASSIGN(MetricsFile metrics,
               MetricsFile::open(config.metrics.file, config.where("metrics.file")));
  PIPER_ASSIGN(Profile profile, Profile::open(job, options.save_costs));
  ModelFiles files;
  if (!config.checkpoint.last_save_path.empty()) {
    PIPER_ASSIGN(files, read_model_files(config));
  }
  Loader loader(job.model, std::move(rows), config.training.global_batch_size,
                config.training.seed);
  PIPER_ASSIGN(const std::unique_ptr<Engine> engine, create(job));
  PIPER_TRY(load_initial_weights(job, *engine));

  Display display(stdout, options.progress && is_terminal(stderr) ? stderr : nullptr);
  display.line(loader.source().describe());
  Interrupt interrupt([&] { engine->cancel("interrupted"); });
  auto summary =
      Run(job, options, *engine, loader, metrics, profile, files, display, interrupt).go();
  if (Status flushed = metrics.flush(); summary && !flushed) {
    return fail(std::move(flushed).error());
  }
  return summary;
}

}  // namespace piper
