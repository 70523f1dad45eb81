#include "tests/runtime/tasks/harness.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <condition_variable>
#include <exception>
#include <mutex>

namespace piper::test {

LiveModel line_model() {
  LiveModel live;
  ModelGraph& graph = live.graph;
  graph.name = "line";
  for (const char* const name : {"w", "v"}) {
    graph.parameters.push_back({name, DType::float64, {2}, false, {}});
    live.parameters.push_back(std::make_shared<at::Tensor>());
    live.inits.push_back(Init::constant(1));
  }
  graph.values = {{"x", DType::float64, {{1, 0}, {0, 2}}, none<RegionId>()},
                  {"labels", DType::int64, {{1, 0}}, none<RegionId>()},
                  {"", DType::float64, {{1, 0}, {0, 2}}, RegionId{0}},
                  {"", DType::float64, {}, RegionId{1}}};
  graph.labels = kLabels;
  graph.loss = kLoss;
  graph.regions.push_back({{}, {kW}, {kX}, {kH}, {}, {}, {}, {}});
  graph.regions.push_back({{}, {kV}, {kH, kLabels}, {kLoss}, {}, {}, {}, {}});
  const ParameterHandle w(live.parameters[0]), v(live.parameters[1]);
  live.regions.push_back([w](const Tensors& in) { return Tensors{in[0] * *w}; });
  live.regions.push_back([v](const Tensors& in) { return Tensors{(in[0] * *v).sum()}; });
  return live;
}

LinePlan::LinePlan(std::vector<std::uint32_t> ranks, std::uint32_t microbatches, std::int64_t rows)
    : builder(microbatches, rows),
      program(builder.program(std::move(ranks))),
      compute(program.stream("compute", Stream::Kind::compute)),
      reduce(program.stream("reduce")) {
  Plan& plan = builder.plan();
  for (std::uint32_t i = 0; i < 2; ++i) {
    Bucket bucket;
    bucket.parameters = {ParameterId{i}};
    bucket.dtype = DType::float64;
    bucket.homes = {0};
    bucket.elements = 2;
    plan.buckets.push_back(bucket);
    program.holds(BucketId{i});
    Chunk chunk;
    chunk.regions = {RegionId{i}};
    chunk.buckets = {BucketId{i}};
    plan.chunks.push_back(chunk);
  }
  chunk(0).inputs = {kX};
  chunk(0).outputs = {kH};
  chunk(1).inputs = {kH, kLabels};
  chunk(1).outputs = {kLoss};
  chunk(1).has_loss = true;
}

const Config& plain_config() {
  static const Config config;
  return config;
}

TaskHarness::TaskHarness(Plan plan, const Config& config)
    : plan_(std::move(plan)),
      config_(config),
      device_(cancellation_, plan_.world),
      connections_(cancellation_, {}),
      communications_(connections_.connect(plan_)) {
  for (std::uint32_t number = 0; number < plan_.world; ++number) {
    const Program& program = plan_.programs[plan_.seat(number).program];
    ranks_.push_back(std::make_unique<Rank>());
    ranks_.back()->number = number;
    ranks_.back()->model = line_model();
    ranks_.back()->buckets.resize(plan_.buckets.size());
    ranks_.back()->scalars.begin(1, 1, false);
    arenas_.push_back(at::zeros({program.arena_bytes}, at::kByte));
    moved_.emplace_back(program.tasks.size(), 0);
    streams_.push_back(device_.make_stream("rank " + std::to_string(number), [] {
      at::set_num_threads(1);
      c10::GradMode::set_enabled(false);
    }));
  }
}

BucketState& TaskHarness::hold(std::uint32_t rank, BucketId id, const at::Tensor& value,
                               const at::Tensor& part) {
  const Bucket& bucket = plan_.buckets[index(id)];
  auto state = std::make_unique<BucketState>();
  state->bucket = &bucket;
  state->value = value;
  state->part = part.defined() ? part : value;
  const at::ScalarType wide = to_torch(gradient_dtype(bucket.dtype));
  state->master = state->part.scalar_type() == wide ? state->part : state->part.to(wide);
  state->gradient = at::zeros_like(state->master);
  if (state->part.is_same(value) && value.numel() == bucket.padded_elements()) {
    at::Tensor& leaf = *ranks_[rank]->model.parameters[index(bucket.parameters[0])];
    leaf = value.narrow(0, 0, bucket.elements).detach().set_requires_grad(true);
    leaf.mutable_grad() = state->gradient.narrow(0, 0, bucket.elements);
  }
  ranks_[rank]->buckets[index(id)] = std::move(state);
  return ranks_[rank]->bucket(id);
}

void TaskHarness::make_all_cells() {
  for (std::uint32_t number = static_cast<std::uint32_t>(cells_.size()); number < plan_.world;
       ++number) {
    cells_.push_back(make_cells(plan_.programs[plan_.seat(number).program], *ranks_[number]));
  }
}

Status TaskHarness::make() {
  make_all_cells();
  for (std::uint32_t number = 0; number < plan_.world; ++number) {
    const Plan::Seat seat = plan_.seat(number);
    const Program& program = plan_.programs[seat.program];
    auto& bodies = bodies_.emplace_back();
    for (const Task& task : program.tasks) {
      const Site site{config_,
                      plan_,
                      program,
                      task,
                      seat.coordinate,
                      *ranks_[number],
                      cells_[number],
                      arenas_[number],
                      communications_[number],
                      switches_,
                      moved_[number][bodies.size()]};
      PIPER_ASSIGN(std::unique_ptr<TaskBody> body, make_task(site));
      bodies.push_back(std::move(body));
    }
  }
  return {};
}

void TaskHarness::run(std::int64_t step) {
  if (bodies_.empty()) {
    const Status made = make();
    ASSERT_TRUE(made) << to_string(made.error());
  }
  ++generation_;
  std::exception_ptr first;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint32_t running = plan_.world;
  for (std::uint32_t number = 0; number < plan_.world; ++number) {
    streams_[number]->enqueue([&, number] {
      try {
        const Launch launch{*streams_[number], device_.id(), generation_, step};
        for (const std::unique_ptr<TaskBody>& body : bodies_[number]) {
          body->launch(launch);
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        first = first ? first : std::current_exception();
        cancellation_.request();
      }
      const std::lock_guard lock(mutex);
      --running;
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return running == 0; });
  if (first) {
    std::rethrow_exception(first);
  }
}

void TaskHarness::run_task(std::uint32_t rank, std::uint32_t task) {
  const c10::NoGradGuard no_grad;
  bodies_[rank][task]->launch({*streams_[rank], device_.id(), 1, 1});
}

void expect_equal(const at::Tensor& got, const at::Tensor& expected) {
  ASSERT_TRUE(got.defined());
  EXPECT_EQ(got.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(at::equal(got, expected)) << "got\n" << got << "\nexpected\n" << expected;
}

}  // namespace piper::test
