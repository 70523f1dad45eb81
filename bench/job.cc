#include "bench/job.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "core/pipeline.h"
#include "core/plugin/host.h"
#include "runtime/model/build.h"
#include "runtime/models/find_model.h"

namespace piper::bench {

Job make_job(const Scratch& scratch, const std::string& text) {
  Job job;
  job.config = must(load_config(scratch.write("job.toml", text), {}));
  job.model = must(build_model(job.config, /*measure=*/true)).graph;
  const SearchPath plugins = must(plugin_search_path({PIPER_PLUGIN_DIR}));
  job.plans = must(plan(job.config, job.model, must(propose(job.config, job.model, plugins))));
  return job;
}

std::string language_model(int pp) {
  return "[model]\nname = \"qwen3\"\nlayers = 8\ndim = 256\nheads = 4\nkv_heads = 4\n"
         "head_dim = 64\nffn = 688\nvocab = 256\ntied = false\n[mesh]\npp = " +
         std::to_string(pp) +
         "\n[training]\ndataset = \"jsonl\"\ndataset_path = [\"none\"]\nseq_len = 256\n"
         "global_batch_size = 16\nmicrobatches = 8\nsteps = 1000\n"
         "[optimizer]\nname = \"sgd\"\nlr = 0.1\n";
}

Batch random_batch(const Job& job) {
  const std::int64_t rows = job.plans.train.global_rows;
  Batch batch;
  for (const Field& field : fields_of(job.model)) {
    batch.emplace(field.value, at::empty({rows, job.config.training.seq_len}, at::kLong)
                                   .random_(0, job.config.model.vocab));
  }
  return batch;
}

Run::Run(Job job, Batch batch)
    : job_(std::move(job)), batch_(std::move(batch)), engine_(must(Engine::create(job_))) {}

StepResult Run::step(bool record) {
  StepInput input;
  input.step = ++count_;
  input.record = record;
  input.batch = [&](std::uint32_t rank) { return block_of(plan(), rank, batch_); };
  return must(engine_->train_step(input));
}

}  // namespace piper::bench
