#include "tests/parity/harness.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/pipeline.h"
#include "core/plugin/host.h"
#include "runtime/data/loader.h"
#include "runtime/models/find_model.h"

namespace piper::testing {
namespace {

std::string toml(const Case& c) {
  std::string text = "[model]\n";
  if (c.model.empty()) {
    text += "name = \"qwen3\"\nlayers = " + std::to_string(c.layers) +
            "\ndim = 16\nheads = 2\nkv_heads = 1\nhead_dim = 8\nffn = 24\nvocab = " +
            std::to_string(kVocab) + "\ntied = " + (c.tied ? "true" : "false") +
            "\ndropout = " + std::to_string(c.dropout) + '\n';
  }
  for (const std::string& line : c.model) {
    text += line + '\n';
  }
  if (!c.freeze.empty()) {
    text += "freeze = [";
    for (const std::string& glob : c.freeze) {
      text += '"' + glob + "\", ";
    }
    text += "]\n";
  }
  text += "[mesh]\npp = " + std::to_string(c.pp) + "\ndp = " + std::to_string(c.dp) +
          "\n[training]\ndataset = \"jsonl\"\ndataset_path = [\"none\"]\nseq_len = " +
          std::to_string(c.seq_len) + "\nglobal_batch_size = " + std::to_string(c.global_rows()) +
          "\nmicrobatches = " + std::to_string(c.microbatches) +
          "\nsteps = 4\nseed = 11\ndtype = \"" + c.dtype +
          "\"\nmax_norm = " + std::to_string(c.max_norm) + '\n';
  for (const std::string& line : c.training) {
    text += line + '\n';
  }
  text += "[optimizer]\nname = \"" + c.optimizer + "\"\nlr = 0.01\nweight_decay = 0.1\n";
  if (c.optimizer == "sgd") {
    text += "momentum = 0.9\n";
  }
  for (const std::string& section : c.sections) {
    text += section + '\n';
  }
  if (c.pp > 1 || c.pipeline_of_one) {
    text += "[[strategy]]\nplugin = \"" + c.plugin + "\"\nschedule = \"" + c.schedule + "\"\n";
    if (c.stages_per_rank > 0) {
      text += "stages_per_rank = " + std::to_string(c.stages_per_rank) + '\n';
    }
  }
  if (!c.zero.empty()) {
    text += "[[strategy]]\nplugin = \"zero\"\n" + c.zero + '\n';
  }
  return text;
}

std::string on_one_line(const std::string& text) {
  std::string joined;
  for (const char letter : text) {
    joined += letter == '\n' ? ", " : std::string(1, letter);
  }
  return joined;
}

// A file that lives as long as the object.
class JobFile {
 public:
  explicit JobFile(const std::string& text) {
    static std::atomic<int> number{0};
    path_ = std::filesystem::temp_directory_path() /
            ("piper_parity_" + std::to_string(getpid()) + '_' + std::to_string(number++) + ".toml");
    std::ofstream(path_) << text;
  }
  ~JobFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Schedule& schedule) {
  return out << schedule.name;
}

Case case_of(const Schedule& schedule) {
  Case c;
  c.plugin = schedule.plugin;
  c.schedule = schedule.name;
  c.stages_per_rank = schedule.stages_per_rank;
  return c;
}

std::int64_t Case::global_rows() const {
  return rows > 0 ? rows : std::int64_t{dp} * microbatches + microbatches / 2 + 1;
}

std::string to_string(const Case& c) {
  return "pp " + std::to_string(c.pp) + " dp " + std::to_string(c.dp) + " microbatches " +
         std::to_string(c.microbatches) + " rows " + std::to_string(c.global_rows()) + ' ' +
         c.schedule + (c.stages_per_rank > 0 ? " of " + std::to_string(c.stages_per_rank) : "") +
         (c.max_norm > 0 ? " clipped" : "") + ' ' + on_one_line(c.zero) + ' ' + c.dtype + ' ' +
         c.optimizer + (c.tied ? " tied" : " untied") +
         (c.dropout > 0 ? " dropout " + std::to_string(c.dropout) : "") +
         (c.freeze.empty() ? "" : " freeze " + c.freeze.front());
}

Expected<Job> make_job(const Case& c, ModelFunction model) {
  const JobFile file(toml(c));
  Job job;
  PIPER_ASSIGN(job.config, load_config(file.path(), {}));
  PIPER_ASSIGN(LiveModel live, model != nullptr ? build_model(job.config, model, /*measure=*/true)
                                                : build_model(job.config, /*measure=*/true));
  job.model = std::move(live.graph);
  PIPER_ASSIGN(const SearchPath plugins, plugin_search_path({PIPER_PLUGIN_DIR}));
  PIPER_ASSIGN(const std::vector<Proposal> proposals, propose(job.config, job.model, plugins));
  PIPER_ASSIGN(job.plans, plan(job.config, job.model, proposals));
  return job;
}

Job job_of(const Case& c) {
  auto job = make_job(c);
  EXPECT_TRUE(job) << to_string(c) << '\n' << to_string(job.error());
  return job ? std::move(*job) : Job{};
}

GlobalBatch uneven_batches(const Job& job) {
  const std::vector<Field> fields = fields_of(job.model);
  const std::int64_t rows = job.config.training.global_batch_size;
  const std::uint32_t dp = job.config.mesh.size("dp");
  const auto microbatches = static_cast<std::uint32_t>(job.config.training.microbatches);
  // Nothing is counted in these rows.
  Rows silent = cut_rows(cut_rows({0, rows}, dp, 0), microbatches, microbatches - 1);
  if (silent.count == rows) {
    silent.count = 0;
  }
  return [=](std::int64_t step) {
    at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step));
    Batch batch;
    for (const Field& field : fields) {
      std::vector<std::int64_t> shape = {rows};
      shape.insert(shape.end(), field.shape.begin(), field.shape.end());
      at::Tensor tensor = at::empty(shape, to_torch(field.dtype));
      if (is_floating(field.dtype)) {
        tensor.normal_(0, 1, generator);
      } else {
        tensor.random_(0, kVocab, generator);
      }
      if (field.labels) {
        const at::Tensor flat = tensor.view({rows, -1});
        for (std::int64_t row = 0; row < rows; ++row) {
          const bool is_silent = row >= silent.begin && row < silent.begin + silent.count;
          flat[row]
              .narrow(0, 0, is_silent ? flat.size(1) : row * 5 % flat.size(1))
              .fill_(kIgnoredLabel);
        }
      }
      batch.emplace(field.value, tensor);
    }
    return batch;
  };
}

StepInput feed(const Plan& plan, const Batch& global, std::int64_t step, double lr_factor) {
  StepInput input;
  input.step = step;
  input.lr_factor = lr_factor;
  input.batch = [&plan, &global](std::uint32_t rank) { return block_of(plan, rank, global); };
  return input;
}

}  // namespace piper::testing
