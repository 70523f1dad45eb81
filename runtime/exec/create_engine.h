// Engine::create with a model from anywhere: tests and benchmarks bring their own.
#pragma once

#include <functional>
#include <memory>

#include "core/base/diagnostic.h"
#include "runtime/exec/engine.h"
#include "runtime/model/build.h"

namespace piper {

// `build` is called once a rank, on the calling thread. Its models have the job's graph.
Expected<std::unique_ptr<Engine>> create_engine(const Job& job,
                                                const std::function<Expected<LiveModel>()>& build);

}  // namespace piper
