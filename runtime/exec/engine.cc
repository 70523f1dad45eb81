#include "runtime/exec/engine.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/plan/groups.h"
#include "core/simulate/emulated.h"
#include "runtime/comm/delayed.h"
#include "runtime/comm/local/channel.h"
#include "runtime/comm/local/collective.h"
#include "runtime/data/dataset.h"
#include "runtime/device/cpu/device.h"
#include "runtime/device/sleep.h"
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
  std::vector<Communication> communications;     // by CommId
  std::vector<std::vector<Cell>> cells;          // by rank and BufferId
  std::unique_ptr<Executor> executor;            // null: the job has no such plan
  std::uint32_t reporter = 0;                    // a rank that knows the loss and the norm
  Spans times;                                   // of the period that runs, where asked for
  std::vector<std::vector<std::int64_t>> moved;  // by rank and task: Site::moved
};

// Everything that the threads can reach. Members end in reverse order: threads first.
struct State {
  explicit State(const Job& j) : job(j) {}

  const Job job;
  Cancellation cancellation;
  Outcome outcome{cancellation};
  Switches switches;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<at::Tensor> arenas;  // by rank
  std::unique_ptr<Device> device;
  PlanState train, evaluate;
  std::unique_ptr<Workers> workers;
};

std::vector<Communication> make_communications(const Plan& plan, const EmulateConfig& emulate,
                                               Cancellation& cancellation) {
  std::vector<Communication> result;
  for (const Communicator& communicator : plan.communicators) {
    Communication& made = result.emplace_back();
    if (communicator.kind == Communicator::Kind::collective) {
      for (const std::vector<std::uint32_t>& group : groups_of(communicator)) {
        made.collectives.push_back(std::make_unique<LocalCollective>(cancellation, group));
        if (emulate.delays()) {
          made.collectives.back() = delay(std::move(made.collectives.back()), emulate);
        }
      }
      continue;
    }
    const std::vector<std::uint32_t>& from = plan.programs[communicator.from].ranks;
    const std::vector<std::uint32_t>& to = plan.programs[communicator.to].ranks;
    PIPER_CHECK(from.size() == to.size(), "groups of different size exchange values");
    std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
    for (std::size_t i = 0; i < from.size(); ++i) {
      members.emplace_back(from[i], to[i]);
    }
    made.point_to_point = std::make_unique<LocalPointToPoint>(cancellation, members);
    if (emulate.delays()) {
      made.point_to_point = delay(std::move(made.point_to_point), emulate);
    }
  }
  return result;
}

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
                             std::uint32_t rank, const Durations& emulated) {
  const Plan::Seat seat = plan.seat(rank);
  const Program& program = plan.programs[seat.program];
  const bool computes = state.job.config.emulate.computes();
  Bodies bodies;
  for (const Task& task : program.tasks) {
    const Site site{state.job.config,
                    plan,
                    program,
                    task,
                    seat.coordinate,
                    *state.ranks[rank],
                    made.cells[rank],
                    state.arenas[rank],
                    made.communications,
                    state.switches,
                    made.moved[rank][bodies.size()]};
    PIPER_ASSIGN(std::unique_ptr<TaskBody> body,
                 computes && runs_chunk(task.op)
                     ? make_emulated(site, emulated[seat.program][bodies.size()])
                     : make_task(site));
    bodies.push_back(std::move(body));
  }
  return bodies;
}

Status prepare(State& state, const Plan& plan, PlanState& made) {
  if (plan.programs.empty()) {
    return {};
  }
  made.communications = make_communications(plan, state.job.config.emulate, state.cancellation);
  made.cells.resize(plan.world);
  const Durations emulated = emulated_durations(plan, state.job.config.emulate);
  std::vector<Bodies> all;
  for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
    const Program& program = plan.programs[plan.seat(rank).program];
    made.cells[rank] = std::vector<Cell>(program.buffers.size());
    made.moved.emplace_back(program.tasks.size(), 0);
    PIPER_ASSIGN(Bodies bodies, make_bodies(state, plan, made, rank, emulated));
    all.push_back(std::move(bodies));
  }
  const auto reports = [&](std::uint32_t rank) {
    const std::vector<Task>& tasks = plan.programs[plan.seat(rank).program].tasks;
    return std::any_of(tasks.begin(), tasks.end(),
                       [](const Task& task) { return task.op == Op::loss_report; });
  };
  while (made.reporter + 1 < plan.world && !reports(made.reporter)) {
    ++made.reporter;
  }
  made.executor = std::make_unique<Executor>(plan, state.job.model, std::move(all), *state.device,
                                             *state.workers, state.cancellation, state.outcome);
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

class LocalEngine final : public Engine {
 public:
  explicit LocalEngine(const Job& job) : state_(std::make_unique<State>(job)) {}

  // A task that never returned holds on to everything: it is left to the end of the process.
  ~LocalEngine() override {
    const auto wedged = [](const PlanState& plan) {
      return plan.executor && plan.executor->wedged();
    };
    if (wedged(state_->train) || wedged(state_->evaluate)) {
      (void)state_.release();
    }
  }

  Status prepare_all(const std::function<Expected<LiveModel>()>& build) {
    State& state = *state_;
    install_counting_allocator();
    const c10::NoGradGuard no_grad;
    const Plans& plans = state.job.plans;
    const Plan& main = plans.train.programs.empty() ? plans.evaluate : plans.train;
    for (std::uint32_t number = 0; number < main.world; ++number) {
      auto rank = std::make_unique<Rank>();
      rank->number = number;
      rank->account = open_account();
      PIPER_ASSIGN(rank->model, build());
      PIPER_TRY(compare(state.job.model, rank->model.graph));
      place_parameters(main, *rank);
      state.ranks.push_back(std::move(rank));
      state.arenas.push_back(make_arena(plans, *state.ranks.back()));
    }
    initialise_parameters(state.ranks, state.job.config.training.seed);

    state.device = std::make_unique<CpuDevice>(state.cancellation, count_workers(plans));
    state.workers = std::make_unique<Workers>(plans, *state.device, [&state](std::uint32_t rank) {
      at::set_num_threads(1);
      if (state.job.config.emulate.computes() || state.job.config.emulate.delays()) {
        sleep_exactly();
      }
      c10::GradMode::set_enabled(false);
      charge_thread(state.ranks[rank]->account.get(), MemoryKind::workspace);
    });
    PIPER_TRY(prepare(state, plans.train, state.train));
    return prepare(state, plans.evaluate, state.evaluate);
  }

  Expected<StepResult> train_step(const StepInput& input) override {
    Switches& switches = state_->switches;
    switches.on_update = input.on_update;
    auto result = step(state_->train, input);
    if (result) {
      switches.gate.next_step();
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

  at::Tensor parameter(std::uint32_t rank, ParameterId id) const override {
    return parameter_on(state_->ranks, rank, id, &BucketState::value);
  }
  at::Tensor master(std::uint32_t rank, ParameterId id) const override {
    return parameter_on(state_->ranks, rank, id, &BucketState::master);
  }
  at::Tensor gradient(std::uint32_t rank, ParameterId id) const override {
    return parameter_on(state_->ranks, rank, id, &BucketState::kept);
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

  void scale_gradients(double factor) override { state_->switches.gradient_scale = factor; }

  void set_parameter(ParameterId id, const at::Tensor& value) override {
    const c10::NoGradGuard no_grad;
    piper::set_parameter(state_->ranks, id, value);
  }

  std::uint32_t world() const override { return static_cast<std::uint32_t>(state_->ranks.size()); }

 private:
  Expected<StepResult> step(PlanState& plan, const StepInput& input) {
    PIPER_CHECK(plan.executor, "the job has no such plan");
    for (const std::unique_ptr<Rank>& rank : state_->ranks) {
      rank->batch = input.batch(rank->number);
      rank->report = {};
    }

    state_->switches.update = any_label_counts();

    const auto start = std::chrono::steady_clock::now();
    PIPER_TRY(plan.executor->run(
        input.step, input.lr_factor,
        std::chrono::duration<double>(state_->job.config.comm.train_timeout_seconds),
        input.record ? &plan.times : nullptr, input.delays));

    StepResult result;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const StepReport& report = state_->ranks[plan.reporter]->report;
    result.loss = report.loss;
    result.tokens = static_cast<std::int64_t>(report.tokens);
    result.grad_norm = report.norm;
    result.finite = report.finite;
    result.busy_seconds = plan.executor->busy_seconds();
    result.times = std::exchange(plan.times, {});
    if (input.record) {
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

Expected<std::unique_ptr<Engine>> create_engine(const Job& job,
                                                const std::function<Expected<LiveModel>()>& build) {
  auto engine = std::make_unique<LocalEngine>(job);
  PIPER_TRY(engine->prepare_all(build));
  return engine;
}

Expected<std::unique_ptr<Engine>> Engine::create(const Job& job) {
  return create_engine(job, [&] { return build_model(job.config, /*measure=*/false); });
}

}  // namespace piper
