#include "core/cli/fit.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "core/base/bytes.h"
#include "core/plugin/host.h"
#include "core/show/memory_text.h"
#include "core/verify/rank_peaks.h"

namespace piper {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::int64_t kMostRows = std::int64_t{1} << 31;

// Plans without a limit.
Expected<Plans> plan_of(CheckedJob job, const ModelGraph& model) {
  job.config.memory.capacity_bytes = 0;
  PIPER_ASSIGN(std::vector<Proposal> proposals, propose(job.config, model, job.plugins));
  proposals.push_back(std::move(job.said));
  return plan(job.config, model, proposals);
}

// A job that might need less, and what a user would write for it.
struct Alternative {
  std::string text;
  CheckedJob job;
};

OptionValue* find_option(StrategyConfig& strategy, const std::string& name) {
  for (auto& [key, value] : strategy.options) {
    if (key == name) {
      return &value;
    }
  }
  return nullptr;
}

void add_microbatches(std::vector<Alternative>& all, const CheckedJob& job) {
  const TrainingConfig& training = job.config.training;
  const std::int64_t most =
      training.global_batch_size / std::max<std::int64_t>(1, job.config.mesh.size("dp"));
  for (const std::int64_t factor : {2, 4}) {
    if (const std::int64_t count = training.microbatches * factor; count <= most) {
      Alternative more{"training.microbatches = " + std::to_string(count), job};
      more.job.config.training.microbatches = count;
      all.push_back(std::move(more));
    }
  }
}

// A job's option: as its table says, else the manifest's default.
OptionValue setting(const StrategyConfig* strategy, const OptionSpec& spec) {
  if (strategy != nullptr) {
    for (const auto& [key, value] : strategy->options) {
      if (key == spec.name) {
        return value;
      }
    }
  }
  return spec.fallback.value_or(OptionValue());
}

// Whether ranks share anything over an axis of the plugin's, as `dp` or `$axis`.
bool shares(const Config& config, const Manifest& manifest, const StrategyConfig* strategy) {
  return std::any_of(manifest.axes.begin(), manifest.axes.end(), [&](const std::string& axis) {
    const OptionSpec* const by = axis.starts_with('$') ? manifest.option(axis.substr(1)) : nullptr;
    const OptionValue chosen = by != nullptr ? setting(strategy, *by) : OptionValue{axis, {}};
    const auto* const name = std::get_if<std::string>(&chosen.value);
    return name != nullptr && config.mesh.size(*name) > 1;
  });
}

// Every higher value of an option that saves memory, in the job's own strategy of the plugin, or
// with one more strategy.
void add_values(std::vector<Alternative>& all, const CheckedJob& job, const Manifest& manifest,
                const OptionSpec& spec) {
  const std::vector<StrategyConfig>& strategies = job.config.strategies;
  const auto own = std::find_if(strategies.begin(), strategies.end(),
                                [&](const StrategyConfig& s) { return s.plugin == manifest.id; });
  const auto at = static_cast<std::size_t>(own - strategies.begin());
  const StrategyConfig* const strategy = own == strategies.end() ? nullptr : &*own;
  if (!shares(job.config, manifest, strategy)) {
    return;
  }
  const OptionValue now = strategy == nullptr ? *spec.min : setting(strategy, spec);
  const auto* const lowest = std::get_if<std::int64_t>(&now.value);
  const auto* const highest = std::get_if<std::int64_t>(&spec.max->value);
  if (lowest == nullptr || highest == nullptr) {
    return;
  }
  for (std::int64_t value = *lowest + 1; value <= *highest; ++value) {
    Alternative more{spec.name + " = " + std::to_string(value) + " of plugin " + manifest.id, job};
    std::vector<StrategyConfig>& changed = more.job.config.strategies;
    if (strategy == nullptr) {
      changed.push_back({manifest.id, manifest.id, {}, job.config.where("memory.capacity")});
    }
    OptionValue* const option = find_option(changed[at], spec.name);
    if (option != nullptr) {
      option->value = value;
    } else {
      changed[at].options.emplace_back(spec.name, OptionValue{value, changed[at].where});
    }
    all.push_back(std::move(more));
  }
}

// What the plugins' manifests say.
void add_settings(std::vector<Alternative>& all, const CheckedJob& job) {
  const auto plugins = find_plugins(job.plugins);
  if (!plugins) {
    return;
  }
  for (const PluginInfo& plugin : *plugins) {
    for (const OptionSpec& spec : plugin.manifest.options) {
      if (plugin.usable() && spec.saves_memory) {
        add_values(all, job, plugin.manifest, spec);
      }
    }
  }
}

void add_recomputation(std::vector<Alternative>& all, const CheckedJob& job) {
  using Mode = ActivationCheckpointConfig::Mode;
  if (job.config.activation_checkpoint.mode == Mode::none) {
    Alternative more{"activation_checkpoint.mode = \"full\"", job};
    more.job.config.activation_checkpoint.mode = Mode::full;
    all.push_back(std::move(more));
  }
}

std::vector<Alternative> alternatives(const CheckedJob& job) {
  std::vector<Alternative> all;
  add_microbatches(all, job);
  add_recomputation(all, job);
  add_settings(all, job);
  return all;
}

// One row on every rank and micro-batch is the unit of a global batch.
class RowSearch {
 public:
  RowSearch(const CheckedJob& job, const ModelGraph& model) : job_(job), model_(model) {}

  Status start() {
    PIPER_ASSIGN(const Plans plans, plan_of(job_, model_));
    microbatches_ = plans.train.microbatches;
    for (const Program& program : plans.train.programs) {
      parts_ = std::max(parts_, std::ssize(program.ranks));
    }
    return {};
  }

  std::int64_t batch(std::int64_t rows) const { return rows * microbatches_ * parts_; }

  Expected<std::int64_t> need(std::int64_t rows) {
    if (const auto found = needs_.find(rows); found != needs_.end()) {
      return found->second;
    }
    PIPER_ASSIGN(const Plans plans, plans_with(rows));
    return needs_[rows] = most_bytes(plans, model_);
  }

  Expected<Plans> plans_with(std::int64_t rows) const {
    CheckedJob job = job_;
    job.config.training.global_batch_size = batch(rows);
    return plan_of(std::move(job), model_);
  }

  // The most that fit, by doubling and then halving what is left; 0 where one does not.
  Expected<std::int64_t> most(std::int64_t capacity) {
    std::int64_t fits = 0, too_many = 1;
    while (too_many <= kMostRows) {
      PIPER_ASSIGN(const std::int64_t bytes, need(too_many));
      if (bytes > capacity) {
        break;
      }
      fits = std::exchange(too_many, 2 * too_many);
    }
    while (too_many - fits > 1) {
      const std::int64_t middle = fits + (too_many - fits) / 2;
      PIPER_ASSIGN(const std::int64_t bytes, need(middle));
      (bytes > capacity ? too_many : fits) = middle;
    }
    return fits;
  }

 private:
  const CheckedJob& job_;
  const ModelGraph& model_;
  std::int64_t microbatches_ = 1, parts_ = 1;
  std::map<std::int64_t, std::int64_t> needs_;  // by rows
};

std::string rows_text(std::int64_t rows) {
  return std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

}  // namespace

void suggest_what_fits(Diagnostics& refused, const CheckedJob& job, const ModelGraph& model) {
  if (refused.size() != 1 || refused[0].code != "plan.capacity") {
    return;
  }
  const auto began = std::chrono::steady_clock::now();
  for (Alternative& other : alternatives(job)) {
    if (std::chrono::steady_clock::now() - began > kPatience) {
      return;
    }
    const std::int64_t microbatches = other.job.config.training.microbatches;
    const Expected<Plans> plans = plan_of(std::move(other.job), model);
    // A directive or a strategy may say how many micro-batches there are, whatever the job does.
    if (plans && plans->train.microbatches == microbatches) {
      const std::int64_t bytes = most_bytes(*plans, model);
      refused[0].note(other.text + " would need " + human_bytes(bytes) +
                      (bytes <= job.config.memory.capacity_bytes ? ", which fits" : ""));
    }
  }
}

Expected<std::string> largest_microbatch(const CheckedJob& job, const ModelGraph& model) {
  const std::int64_t capacity = job.config.memory.capacity_bytes;
  if (capacity == 0) {
    return fail(error("memory.no_capacity",
                      "--max-batch: expected [memory] capacity, or --memory.capacity=40GiB, got "
                      "neither",
                      job.config.where("memory.capacity")));
  }
  RowSearch search(job, model);
  PIPER_TRY(search.start());
  PIPER_ASSIGN(const std::int64_t rows, search.most(capacity));
  PIPER_ASSIGN(const std::int64_t next, search.need(rows + 1));
  if (rows == 0) {
    return fail(error("plan.capacity",
                      "expected at least " + human_bytes(next) +
                          " for one row a micro-batch, got " + human_bytes(capacity),
                      job.config.where("memory.capacity")));
  }
  PIPER_ASSIGN(const Plans plans, search.plans_with(rows));
  return rows_text(rows) +
         " a micro-batch: training.global_batch_size = " + std::to_string(search.batch(rows)) +
         " needs " + human_bytes(most_bytes(plans, model)) + " of " + human_bytes(capacity) + "; " +
         rows_text(rows + 1) + " would need " + human_bytes(next) + "\n\n" +
         memory_text(plans, model, std::nullopt, "");
}

}  // namespace piper
