#include "runtime/exec/engine.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/simulate/emulated.h"
#include "runtime/backend/local/local_backend.h"
#include "runtime/data/dataset.h"
#include "runtime/exec/create_engine.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/outcome.h"
#include "runtime/exec/parameters.h"
#include "runtime/exec/workers.h"
#include "runtime/models/find_model.h"
#include "runtime/tasks/emulated.h"
#include "runtime/tasks/make_task.h"

namespace piper {
namespace {

// One plan of the job, ready to run.
struct PlanState {
  std::vector<Communications> communications;    // by local rank
  std::vector<std::vector<Cell>> cells;          // by rank and BufferId
  std::unique_ptr<Executor> executor;            // null: the job has no such plan
  std::uint32_t reporter = 0;                    // a rank that knows the loss and the norm
  std::vector<std::vector<std::int64_t>> moved;  // by rank and task: Site::moved
};

// Everything that the threads can reach. Members end in reverse order: threads first.
struct State {
  State(const Job& j, EngineParts p)
      : job(j),
        parts(std::move(p)),
        backend(parts.backend ? std::move(parts.backend) : make_local_backend(job)),
        outcome(backend->cancellation()) {}

  const Job job;
  EngineParts parts;
  const std::unique_ptr<Backend> backend;
  Outcome outcome;
  Switches switches;
  std::vector<std::unique_ptr<Rank>> ranks;  // the local ones
  std::vector<at::Tensor> arenas;            // by local rank
  PlanState train, evaluate;
  std::unique_ptr<Workers> workers;
};

// The arena of a rank, which both plans use: one after the other.
at::Tensor make_arena(const Plans& plans, const Rank& rank) {
  std::int64_t bytes = 0;
  for (const Plan* const plan : {&plans.train, &plans.evaluate}) {
    if (!plan->programs.empty()) {
      bytes = std::max(bytes, plan->programs[plan->seat(rank.number).program].arena_bytes);
    }
  }
  const Charge charge(rank.account.get(), MemoryKind::communication);
  return at::empty({bytes}, at::kByte);
}

Expected<Bodies> make_bodies(const State& state, const Plan& plan, PlanState& made,
                             std::size_t local, const Durations& emulated) {
  Rank& rank = *state.ranks[local];
  const Plan::Seat seat = plan.seat(rank.number);
  const Program& program = plan.programs[seat.program];
  const bool computes = state.job.config.emulate.computes();
  Bodies bodies;
  for (const Task& task : program.tasks) {
    const Site site{state.job.config,
                    plan,
                    program,
                    task,
                    seat.coordinate,
                    rank,
                    made.cells[local],
                    state.arenas[local],
                    made.communications[local],
                    state.switches,
                    made.moved[local][bodies.size()]};
    PIPER_ASSIGN(std::unique_ptr<TaskBody> body,
                 computes && runs_chunk(task.op)
                     ? make_emulated(site, emulated[seat.program][bodies.size()])
                     : make_task(site));
    if (state.parts.wrap) {
      body = state.parts.wrap(rank.number, task, std::move(body));
    }
    bodies.push_back(std::move(body));
  }
  return bodies;
}

Status prepare(State& state, const Plan& plan, PlanState& made) {
  if (plan.programs.empty()) {
    return {};
  }
  made.communications = state.backend->connect(plan);
  made.cells.resize(state.ranks.size());
  const Durations emulated = emulated_durations(plan, state.job.config.emulate);
  std::vector<Bodies> all;
  for (std::size_t local = 0; local < state.ranks.size(); ++local) {
    const Program& program = plan.programs[plan.seat(state.ranks[local]->number).program];
    made.cells[local] = make_cells(program, *state.ranks[local]);
    made.moved.emplace_back(program.tasks.size(), 0);
    PIPER_ASSIGN(Bodies bodies, make_bodies(state, plan, made, local, emulated));
    all.push_back(std::move(bodies));
  }
  const auto reports = [&](std::size_t local) {
    const std::uint32_t rank = state.ranks[local]->number;
    const std::vector<Task>& tasks = plan.programs[plan.seat(rank).program].tasks;
    return std::any_of(tasks.begin(), tasks.end(),
                       [](const Task& task) { return task.op == Op::loss_report; });
  };
  while (made.reporter + 1 < state.ranks.size() && !reports(made.reporter)) {
    ++made.reporter;
  }
  made.executor = std::make_unique<Executor>(
      plan, state.job.model, state.backend->local_ranks(), std::move(all), state.backend->device(),
      *state.workers, state.backend->cancellation(), state.outcome);
  return {};
}

// The model that was captured, and planned, is the one that was built now.
Status compare(const ModelGraph& planned, const ModelGraph& built) {
  const auto same_parameters = std::equal(
      planned.parameters.begin(), planned.parameters.end(), built.parameters.begin(),
      built.parameters.end(), [](const Parameter& a, const Parameter& b) {
        return a.name == b.name && a.shape == b.shape && a.dtype == b.dtype && a.frozen == b.frozen;
      });
  const auto same_regions = std::equal(
      planned.regions.begin(), planned.regions.end(), built.regions.begin(), built.regions.end(),
      [](const Region& a, const Region& b) {
        return a.inputs == b.inputs && a.outputs == b.outputs && a.parameters == b.parameters;
      });
  if (planned.values != built.values || !same_parameters || !same_regions) {
    return fail(error("run.model", "model '" + planned.name +
                                       "' is not the one that was captured: capture it again"));
  }
  return {};
}

bool counts_any(const at::Tensor& labels) {
  const at::Tensor flat = labels.contiguous();
  const auto* const begin = flat.const_data_ptr<std::int64_t>();
  return std::any_of(begin, begin + flat.numel(),
                     [](std::int64_t label) { return label != kIgnoredLabel; });
}

class PlanEngine final : public Engine {
 public:
  PlanEngine(const Job& job, EngineParts parts)
      : state_(std::make_unique<State>(job, std::move(parts))) {}

  // A task that never returned holds on to everything: it is left to the end of the process.
  ~PlanEngine() override {
    const auto wedged = [](const PlanState& plan) {
      return plan.executor && plan.executor->wedged();
    };
    if (wedged(state_->train) || wedged(state_->evaluate)) {
      (void)state_.release();
    }
  }

  Status prepare_all() {
    State& state = *state_;
    const c10::NoGradGuard no_grad;
    const Plans& plans = state.job.plans;
    for (const std::uint32_t number : state.backend->local_ranks()) {
      auto rank = std::make_unique<Rank>();
      rank->number = number;
      rank->account = state.backend->account(state.ranks.size());
      rank->scalars = StepScalars(to_torch(state.backend->device().id()));
      PIPER_ASSIGN(rank->model, state.parts.model());
      PIPER_TRY(compare(state.job.model, rank->model.graph));
      place_parameters(main(), *rank);
      state.ranks.push_back(std::move(rank));
      state.arenas.push_back(make_arena(plans, *state.ranks.back()));
    }
    initialise_parameters(main(), state.ranks, state.job.config.training.seed);

    state.workers = std::make_unique<Workers>(plans, state.backend->local_ranks(),
                                              state.backend->device(), [&](std::size_t local) {
                                                state.backend->enter(local);
                                                c10::GradMode::set_enabled(false);
                                              });
    PIPER_TRY(prepare(state, plans.train, state.train));
    return prepare(state, plans.evaluate, state.evaluate);
  }

  Expected<StepResult> train_step(const StepInput& input) override {
    auto result = step(state_->train, input);
    if (result) {
      state_->switches.gate.next_step();
    }
    return result;
  }
  Expected<StepResult> evaluate_step(const StepInput& input) override {
    return step(state_->evaluate, input);
  }

  bool is_whole() override {
    return state_->outcome.status() ? true : state_->switches.gate.close();
  }

  void cancel(const std::string& why) override {
    state_->outcome.fail(error("run.cancelled", why));
  }

  const std::vector<std::uint32_t>& local_ranks() const override {
    return state_->backend->local_ranks();
  }
  std::vector<ParameterPart> parts(std::uint32_t rank, Kept what) const override {
    const auto& ranks = local_ranks();
    const auto local = std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return parts_of(*state_->ranks[local], what);
  }
  std::vector<std::uint32_t> homes(ParameterId id) const override {
    std::vector<std::uint32_t> ranks = ranks_of(main());
    std::erase_if(ranks,
                  [&](std::uint32_t rank) { return !find(main(), state_->job.model, id, rank); });
    return ranks;
  }
  at::Tensor gather(Kept what, ParameterId id, std::uint32_t home,
                    std::uint32_t to) const override {
    constexpr std::int64_t kPiece = std::int64_t{64} << 20;
    return piper::gather(main(), state_->ranks, *state_->backend, what, id, home, to, kPiece);
  }
  std::vector<std::int64_t> gather(const std::vector<std::int64_t>& numbers,
                                   std::uint32_t to) const override {
    const auto& local = local_ranks();
    std::vector<std::int64_t> all;
    for (const std::uint32_t rank : ranks_of(main())) {
      const auto own = std::lower_bound(local.begin(), local.end(), rank);
      const bool here = own != local.end() && *own == rank;
      state_->backend->bring(rank, here ? &numbers[own - local.begin()] : nullptr, to,
                             &all.emplace_back(), sizeof all[0]);
    }
    return all;
  }

  void keep_gradients(bool keep) override {
    state_->switches.keep_gradients = keep;
    for (const std::unique_ptr<Rank>& rank : state_->ranks) {
      for (const std::unique_ptr<BucketState>& bucket : rank->buckets) {
        if (bucket && bucket->gradient.defined()) {
          bucket->kept = keep ? at::empty_like(bucket->gradient) : at::Tensor();
        }
      }
    }
  }

  void set_parameter(ParameterId id, const at::Tensor& value) override {
    const c10::NoGradGuard no_grad;
    piper::set_parameter(main(), state_->ranks, id, value);
  }

 private:
  // Of its buckets.
  const Plan& main() const {
    const Plans& plans = state_->job.plans;
    return plans.train.programs.empty() ? plans.evaluate : plans.train;
  }

  Expected<StepResult> step(PlanState& plan, const StepInput& input) {
    PIPER_CHECK(plan.executor, "the job has no such plan");
    for (const std::unique_ptr<Rank>& rank : state_->ranks) {
      rank->batch = input.batch(rank->number);
    }
    const bool nothing = !any_label_counts();
    for (const std::unique_ptr<Rank>& rank : state_->ranks) {
      rank->scalars.begin(input.lr_factor, input.step, nothing);
    }

    const auto start = std::chrono::steady_clock::now();
    PIPER_TRY(plan.executor->run(
        input.step, input.lr_factor,
        std::chrono::duration<double>(state_->job.config.comm.train_timeout_seconds),
        input.record));

    StepResult result;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const StepReport report = StepScalars::report(state_->ranks[plan.reporter]->scalars.all);
    result.loss = report.loss;
    result.tokens = static_cast<std::int64_t>(report.tokens);
    result.grad_norm = report.norm;
    result.finite = report.finite;
    result.busy_ns = plan.executor->busy();
    if (input.record) {
      result.times = plan.executor->times();
      result.moved = plan.moved;
    }
    for (const std::unique_ptr<Rank>& rank : state_->ranks) {
      rank->batch.clear();
      result.peak_bytes.push_back(rank->account->peak());
      result.live_bytes.push_back(rank->account->live());
      auto& kinds = result.peak_of_kind.emplace_back();
      for (std::size_t kind = 0; kind < kMemoryKinds; ++kind) {
        kinds[kind] = rank->account->peak(static_cast<MemoryKind>(kind));
      }
    }
    return result;
  }

  // Known on every rank before the step starts: the plan's count is that of ranks with the loss.
  bool any_label_counts() const {
    const ValueId labels = state_->job.model.labels;
    return std::any_of(state_->ranks.begin(), state_->ranks.end(), [&](const auto& rank) {
      const auto there = rank->batch.find(labels);
      return there != rank->batch.end() && counts_any(there->second);
    });
  }

  std::unique_ptr<State> state_;
};

}  // namespace

Expected<std::unique_ptr<Engine>> create_engine(const Job& job, EngineParts parts) {
  auto engine = std::make_unique<PlanEngine>(job, std::move(parts));
  PIPER_TRY(engine->prepare_all());
  return engine;
}

Expected<std::unique_ptr<Engine>> create_engine(const Job& job,
                                                const std::function<Expected<LiveModel>()>& build) {
  return create_engine(job, EngineParts{.model = build});
}

Expected<std::unique_ptr<Engine>> Engine::create(const Job& job) {
  return create_engine(job, [&] { return build_model(job.config, /*measure=*/false); });
}

}  // namespace piper
