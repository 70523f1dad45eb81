// Settings that have no effect, or less than they say, as far as the job alone shows it. What needs
// the model or the plan is in core/settings.
//
// A key that is given as its default says nothing, so that a printed job is remarked on as little
// as the job itself; what is said twice is still true. A remark tells what happens instead.
#include <string>

#include "core/config/load.h"
#include "core/config/lr_phases.h"
#include "core/config/schema.h"

namespace piper {
namespace {

std::string counted(std::int64_t count, const std::string& thing) {
  return std::to_string(count) + ' ' + thing + (count == 1 ? "" : "s");
}

class Remarks {
 public:
  explicit Remarks(Config& config) : config_(config) {}

  void add_all() {
    optimizer();
    groups();
    warmup();
    decay();
    validation();
    ranks();
    graph();
    others();
  }

 private:
  bool given(const std::string& path) const { return is_given(config_, path); }

  void no_effect(const std::string& path, const std::string& why) {
    if (given(path)) {
      config_.remarks.push_back(
          warning("config.no_effect", path + " has no effect: " + why, config_.where(path)));
    }
  }
  void less(const std::string& path, const std::string& what) {
    config_.remarks.push_back(
        warning("config.less_effect", path + ": " + what, config_.where(path)));
  }

  std::string steps() const { return "training.steps = " + std::to_string(config_.training.steps); }

  void optimizer() {
    const bool sgd = config_.optimizer.name == OptimizerName::sgd;
    if (sgd) {
      for (const char* key : {"beta1", "beta2", "eps"}) {
        no_effect(std::string("optimizer.") + key, "it is adamw's, and optimizer.name is \"sgd\"");
      }
    } else {
      no_effect("optimizer.momentum",
                "it is sgd's, and optimizer.name is \"adamw\" (beta1 decays its first moment)");
    }
  }

  void groups() {
    for (const OptimizerGroup& group : config_.optimizer.groups) {
      if (!group.lr && !group.weight_decay) {
        config_.remarks.push_back(warning(
            "config.no_effect",
            "[[optimizer.group]] without lr and weight_decay: its parameters are trained as "
            "[optimizer] says",
            group.where));
      }
    }
  }

  void warmup() {
    const LrPhases phases = lr_phases(config_.lr_scheduler, config_.training.steps);
    if (phases.warmup_asked > phases.warmup) {
      less("lr_scheduler.warmup_steps",
           "expected at most " + steps() + ", got " + std::to_string(phases.warmup_asked) +
               ": the warm-up is cut to " + counted(phases.warmup, "step"));
    } else if (phases.warmup_asked == 1) {
      no_effect("lr_scheduler.warmup_steps",
                "the learning rate rises to its full height at the last step of a warm-up, here "
                "the first of all");
    }
  }

  void decay() {
    const LrSchedulerConfig& scheduler = config_.lr_scheduler;
    if (scheduler.decay_type == Decay::none) {
      for (const char* key : {"lr_scheduler.decay_ratio", "lr_scheduler.min_lr_factor"}) {
        no_effect(key, "lr_scheduler.decay_type is \"none\"");
      }
      return;
    }
    const LrPhases phases = lr_phases(scheduler, config_.training.steps);
    if (phases.decay_asked > phases.decay) {
      less("lr_scheduler.decay_ratio",
           "expected at most " + steps() + " for warm-up and decay, got " +
               std::to_string(phases.warmup) + " + " + std::to_string(phases.decay_asked) +
               ": the decay is cut to " + counted(phases.decay, "step"));
    }
    if (phases.decay <= 1) {
      const std::string why = "the decay has " + counted(phases.decay, "step") + " of " + steps() +
                              ", and reaches its end one step after the last";
      no_effect("lr_scheduler.decay_type", why);
      no_effect("lr_scheduler.min_lr_factor", "there is no decay");
    }
  }

  void validation() {
    const ValidationConfig& validation = config_.validation;
    if (validation.fraction == 0) {
      for (const char* key : {"validation.freq", "validation.steps"}) {
        no_effect(key, "validation.fraction = 0 holds nothing out");
      }
    } else if (validation.freq > config_.training.steps) {
      less("validation.freq", "expected at most " + steps() + ", got " +
                                  std::to_string(validation.freq) +
                                  ": there is one held-out loss, at the end");
    }
  }

  void ranks() {
    no_effect("comm.init_timeout_seconds",
              "with comm.backend = \"local\" the ranks are threads, which need not meet");
    if (config_.mesh.world() == 1) {
      for (const char* key :
           {"comm.train_timeout_seconds", "emulate.link_latency_us", "emulate.link_gbps"}) {
        no_effect(key, "a job of one rank waits for none, and sends nothing");
      }
    }
  }

  // A graph was captured with the keys of [model]; core/settings compares the length and the type.
  void graph() {
    if (config_.model.graph.empty()) {
      return;
    }
    const std::string why = "model.graph is of one captured before, with the value of then";
    for (const Key& key : schema()) {
      if (key.section == "model" && key.name != "graph" && key.supported) {
        no_effect(key.path(), why);
      }
    }
  }

  void others() {
    if (config_.metrics.log_freq > config_.training.steps) {
      less("metrics.log_freq", "expected at most " + steps() + ", got " +
                                   std::to_string(config_.metrics.log_freq) +
                                   ": the first and the last step are printed");
    }
    if (config_.activation_checkpoint.mode == ActivationCheckpointConfig::Mode::none) {
      no_effect("activation_checkpoint.filter", "activation_checkpoint.mode is \"none\"");
    }
    if (config_.emulate.computes() && given("checkpoint.last_save_path")) {
      less("checkpoint.last_save_path",
           "[emulate] computes nothing, so the weights that are saved have learnt nothing");
    }
  }

  Config& config_;
};

}  // namespace

void add_remarks(Config& config) {
  Remarks(config).add_all();
}

}  // namespace piper
