// Engine::create with other parts: tests and benchmarks bring their own model, back end or tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/diagnostic.h"
#include "runtime/backend/backend.h"
#include "runtime/exec/engine.h"
#include "runtime/model/build.h"
#include "runtime/tasks/task.h"

namespace piper {

struct EngineParts {
  // Called once a rank, on the calling thread. Its models have the job's graph.
  std::function<Expected<LiveModel>()> model;
  // None: make_local_backend.
  std::unique_ptr<Backend> backend = nullptr;
  // Where given: what runs a task of the plan on a rank, instead of `body`.
  std::function<std::unique_ptr<TaskBody>(std::uint32_t rank, const Task& task,
                                          std::unique_ptr<TaskBody> body)>
      wrap = {};
};
Expected<std::unique_ptr<Engine>> create_engine(const Job& job, EngineParts parts);

// With a model alone.
Expected<std::unique_ptr<Engine>> create_engine(const Job& job,
                                                const std::function<Expected<LiveModel>()>& build);

}  // namespace piper
