// Every key of a job does something. Each key of schema() is given another value in a small job;
// the plan, the prediction, the numbers, the output or what is said must be another one then. A new
// key without a row, or without an effect, fails.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/config/schema.h"
#include "tests/cli/run_program.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

// Keys that have one value in this version, so that there is no other to give.
const std::map<std::string, std::string> kExceptions = {
    {"comm.backend", "\"local\" is the only one; the others are refused"},
    {"device.type", "\"cpu\" is the only one; the other is refused"},
};

// One key and another value than the job's. A key with choices needs no row: each is tried, with
// the `with` of its row where it has one.
struct Setting {
  std::string key, value;
  Texts with = {};           // further overrides, of both runs, without which the key is of no use
  double least_seconds = 0;  // of every step with the value: for what only takes time
};

const std::vector<Setting>& settings() {
  const Texts emulated = {"emulate.forward_ms=0", "emulate.backward_input_ms=0",
                          "emulate.backward_weight_ms=0"};
  const Texts measured = {"cost.model=measured", "cost.file=costs.toml"};
  static const std::vector<Setting> rows = {
      {"model.name", "another"},
      {"model.flavor", "debug"},
      {"model.hf_assets_path", "hf", {"checkpoint.initial_load_in_hf=false"}},
      {"model.library", "./another.so"},
      {"model.graph", "another.graph"},
      {"model.freeze", "model.norm.weight"},
      {"model.layers", "3"},
      {"model.dim", "16"},
      {"model.heads", "4"},
      {"model.kv_heads", "1"},
      {"model.head_dim", "6"},
      {"model.ffn", "24"},
      {"model.vocab", "300"},
      {"model.tied", "true"},
      {"model.rope_theta", "10"},
      {"model.norm_eps", "0.1"},
      {"model.dropout", "0.5"},
      {"training.dataset_path", "text/[0-5]"},
      {"training.seq_len", "4"},
      {"training.global_batch_size", "6"},
      {"training.microbatches", "1"},
      {"training.steps", "2"},
      {"training.seed", "1"},
      {"training.max_norm", "0.01"},
      {"training.non_finite", "skip", {"optimizer.lr=1e38", "optimizer.name=sgd"}},
      {"optimizer.lr", "0.1"},
      {"optimizer.beta1", "0.5"},
      {"optimizer.beta2", "0.5"},
      {"optimizer.eps", "0.1"},
      {"optimizer.weight_decay", "0.5"},
      {"optimizer.momentum", "0.5", {"optimizer.name=sgd"}},
      {"lr_scheduler.warmup_steps", "2"},
      {"lr_scheduler.decay_ratio", "0.67", {"lr_scheduler.decay_type=linear"}},
      {"lr_scheduler.min_lr_factor", "0.5", {"lr_scheduler.decay_type=linear"}},
      {"validation.freq", "1"},
      {"validation.steps", "1", {"validation.fraction=0.5"}},
      {"validation.fraction", "0.5"},
      {"checkpoint.initial_load_path", "saved"},
      {"checkpoint.initial_load_in_hf",
       "true",
       {"model.hf_assets_path=saved", "checkpoint.initial_load_in_hf=false"}},
      {"checkpoint.last_save_path", "out"},
      {"checkpoint.last_save_in_hf", "false", {"checkpoint.last_save_path=out"}},
      {"metrics.log_freq", "3"},
      {"metrics.file", "other.jsonl"},
      {"comm.init_timeout_seconds", "5"},
      {"comm.train_timeout_seconds", "0.01", {"emulate.forward_ms=100"}},
      {"comm.receive_distance", "0"},
      {"cost.machine", "machine.toml", {"cost.model=analytical"}},
      {"cost.model", "analytical", {}},
      {"cost.file", "slower.toml", measured},
      {"memory.capacity", "1KiB"},
      {"profiling.trace", "trace.json"},
      {"activation_checkpoint.filter",
       "{ layer = 0 }",
       {"activation_checkpoint.mode=selective",
        "activation_checkpoint.filter={ layer = \"0..1\" }"}},
      {"emulate.forward_ms", "40", emulated, 0.04},
      {"emulate.backward_input_ms", "40", emulated, 0.04},
      {"emulate.backward_weight_ms", "40", emulated, 0.04},
      {"emulate.link_latency_us", "40000", emulated, 0.04},
      {"emulate.link_gbps", "1e-4", emulated, 0.01},
  };
  return rows;
}

// What a user gets of a job. Figures that differ from run to run are left out.
struct Outcome {
  int status = 0;
  std::string said;       // standard error
  std::string plan;       // with the model's parameters
  std::string predicted;  // `piper simulate`
  std::string numbers;    // the metrics file, and held-out losses
  std::string lines;      // the steps that are printed
  std::string files;      // that were written, and what the saved weights are
  double least_seconds = 0;
};

class Settings : public ::testing::Test {
 protected:
  Settings() : folder_(fs::temp_directory_path() / ("piper_set_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "text");
    fs::create_directories(folder_ / "hf");
    for (int document = 0; document < 10; ++document) {
      std::ofstream(folder_ / "text" / std::to_string(document))
          << std::string(100, static_cast<char>('a' + document)) << "the end";
    }
    std::ofstream(folder_ / "job.toml") << R"([model]
layers = 2
dim = 8
heads = 2
ffn = 16
vocab = 257
[training]
dataset_path = "text/*"
seq_len = 8
global_batch_size = 4
microbatches = 2
steps = 3
[mesh]
pp = 2
[[strategy]]
plugin = "interleaved1f1b"
)";
    std::ofstream(folder_ / "hf" / "config.json")
        << R"({"model_type": "qwen3", "hidden_size": 8, "num_hidden_layers": 2,
"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 16,
"vocab_size": 257, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": false})";
    std::ofstream(folder_ / "machine.toml") << "tflops = 0.001\nmemory_gbps = 1\n";
    for (const auto& [name, us] : {std::pair("costs.toml", 10), std::pair("slower.toml", 90)}) {
      std::ofstream costs(folder_ / name);
      for (const char* op : {"forward", "backward"}) {
        costs << "[[cost]]\nop = \"" << op << "\"\nregions = \"0..99\"\nus = " << us << '\n';
      }
    }
    start("train", {"checkpoint.last_save_path=saved"});
  }
  ~Settings() override { fs::remove_all(folder_); }

  Ended start(const std::string& command, const Texts& overrides, const Texts& options = {}) const {
    Texts arguments = {command, "job.toml"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    for (const std::string& override : overrides) {
      arguments.push_back("--" + override);
    }
    return run_program(PIPER_PROGRAM, arguments, folder_,
                       {{"PIPER_CACHE", (folder_ / "cache").string()}});
  }

  // Does no more than planning, for what shows there.
  Outcome planned(const Texts& overrides) const {
    Outcome outcome;
    const Ended plan = start("plan", overrides);
    outcome.status = plan.status;
    outcome.said = plan.err;
    outcome.plan = plan.out;
    const bool emulates = std::any_of(overrides.begin(), overrides.end(),
                                      [](const auto& o) { return o.starts_with("emulate."); });
    const Ended simulated =
        start("simulate", overrides, emulates ? Texts{"--costs=emulated"} : Texts{});
    outcome.predicted = simulated.out;
    return outcome;
  }

  Outcome trained(const Texts& overrides) const {
    fs::remove(folder_ / "m.jsonl");
    fs::remove_all(folder_ / "out");
    Texts all = {"metrics.file=m.jsonl"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const std::set<std::string> before = names();
    const Ended run = start("train", all, {"--no-progress"});
    Outcome outcome;
    outcome.status = run.status;
    outcome.said = run.err;
    std::stringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("step ")) {
        const bool held_out = line.find("held-out") != std::string::npos;
        outcome.lines += (held_out ? line : line.substr(0, line.find("  "))) + '\n';
      }
    }
    read_metrics(outcome);
    for (const std::string& name : names()) {
      if (!before.contains(name)) {
        outcome.files += name + '\n';
        fs::remove_all(folder_ / name);
      }
    }
    return outcome;
  }

  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      found.insert(entry.path().filename());
    }
    return found;
  }

  void read_metrics(Outcome& outcome) const {
    std::ifstream file(folder_ / "m.jsonl");
    for (std::string line; std::getline(file, line);) {
      auto fields = nlohmann::ordered_json::parse(line);
      const double seconds = fields.value("step_seconds", 0.0);
      outcome.least_seconds =
          outcome.numbers.empty() ? seconds : std::min(outcome.least_seconds, seconds);
      for (const char* varies : {"step_seconds", "tokens_per_second", "bubble", "peak_bytes"}) {
        fields.erase(varies);
      }
      outcome.numbers += fields.dump() + '\n';
    }
  }

  // What `value` changes, "" = nothing.
  std::string change(const Setting& setting) {
    Texts with = setting.with;
    with.push_back(setting.key + '=' + setting.value);
    const Outcome& before = planned_without(setting);
    const Outcome after = planned(with);
    EXPECT_EQ(before.status, 0) << setting.key << ": " << before.said;
    if (setting.least_seconds == 0) {
      if (after.status != before.status || after.said != before.said) {
        return "said";
      }
      if (after.plan != before.plan) {
        return "plan";
      }
      if (after.predicted != before.predicted) {
        return "prediction";
      }
    }
    const Outcome run = trained(with);
    if (setting.least_seconds > 0) {
      return run.least_seconds >= setting.least_seconds && after.predicted != before.predicted
                 ? "time"
                 : "";
    }
    const Outcome& base = trained_without(setting);
    return run.status != base.status || run.said != base.said ? "said"
           : run.numbers != base.numbers                      ? "numbers"
           : run.lines != base.lines                          ? "lines"
           : run.files != base.files                          ? "files"
                                                              : "";
  }

  // Without the setting; run once for each `with`.
  const Outcome& planned_without(const Setting& setting) {
    const auto [found, is_new] = planned_.try_emplace(setting.with);
    if (is_new) {
      found->second = planned(setting.with);
    }
    return found->second;
  }
  const Outcome& trained_without(const Setting& setting) {
    const auto [found, is_new] = trained_.try_emplace(setting.with);
    if (is_new) {
      found->second = trained(setting.with);
    }
    return found->second;
  }

  fs::path folder_;
  std::map<Texts, Outcome> planned_, trained_;  // by Setting::with
};

// The rows of a key: its own, and one for each choice that it has beside the default.
std::vector<Setting> rows_of(const Key& key) {
  std::vector<Setting> rows;
  Texts with;
  for (const Setting& row : settings()) {
    if (row.key == key.path()) {
      rows.push_back(row);
      with = row.with;
    }
  }
  static const Config defaults;
  for (const std::string& choice : key.choices) {
    const bool listed = std::any_of(rows.begin(), rows.end(),
                                    [&](const Setting& row) { return row.value == choice; });
    if (!listed && toml_text(choice) != key.text(defaults)) {
      rows.push_back({key.path(), choice, with});
    }
  }
  return rows;
}

TEST_F(Settings, AreAllOfEffectOrRemarkedOn) {
  const Outcome base = trained({});
  ASSERT_EQ(base.status, 0) << base.said;
  ASSERT_EQ(base.said, "");
  ASSERT_TRUE(fs::exists(folder_ / "saved" / "config.json"));
  for (const Key& key : schema()) {
    if (!key.supported) {
      const Ended refused = start("plan", {key.path() + "=1"});
      EXPECT_EQ(refused.status, 2) << key.path();
      EXPECT_NE(refused.err.find("[config.unsupported]"), std::string::npos) << refused.err;
      continue;
    }
    const std::vector<Setting> rows = rows_of(key);
    EXPECT_EQ(rows.empty(), kExceptions.contains(key.path()))
        << key.path() << ": give it another value in this test";
    for (const Setting& row : rows) {
      const std::string changed = change(row);
      EXPECT_NE(changed, "") << row.key << " = " << row.value << " changes nothing, and no remark "
                             << "says so";
    }
  }
}

// What a remark calls without effect has none: no other plan, and no other number.
TEST_F(Settings, HaveNoEffectWhereARemarkSaysSo) {
  const std::vector<Setting> rows = {
      {"optimizer.momentum", "0.5"},
      {"optimizer.beta1", "0.5", {"optimizer.name=sgd"}},
      {"optimizer.beta2", "0.5", {"optimizer.name=sgd"}},
      {"optimizer.eps", "0.5", {"optimizer.name=sgd"}},
      {"lr_scheduler.warmup_steps", "1"},
      {"lr_scheduler.decay_ratio", "0.5"},
      {"lr_scheduler.min_lr_factor", "0.5"},
      {"lr_scheduler.decay_type", "linear", {"training.steps=1"}},
      {"validation.freq", "2", {"validation.fraction=0"}},
      {"validation.steps", "2", {"validation.fraction=0"}},
      {"comm.init_timeout_seconds", "5"},
      {"comm.receive_distance", "5", {"mesh.pp=1"}},
      {"comm.train_timeout_seconds", "5", {"mesh.pp=1"}},
      {"emulate.link_gbps", "1", {"mesh.pp=1"}},
      {"emulate.link_latency_us", "1000", {"mesh.pp=1"}},
      {"cost.machine", "machine.toml"},
      {"activation_checkpoint.filter", "{ layer = 0 }"},
  };
  for (const Setting& row : rows) {
    Texts with = row.with;
    with.push_back(row.key + '=' + row.value);
    const Outcome& before = trained_without(row);
    const Outcome after = trained(with);
    EXPECT_NE(after.said.find("--" + with.back() + ": warning: " + row.key + " has no effect: "),
              std::string::npos)
        << row.key << ": " << after.said;
    EXPECT_EQ(after.numbers, before.numbers) << row.key;
    EXPECT_EQ(after.lines, before.lines) << row.key;
    EXPECT_EQ(start("plan", with).out, start("plan", row.with).out) << row.key;
  }
}

}  // namespace
}  // namespace piper::testing
