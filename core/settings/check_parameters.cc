#include "core/settings/check_parameters.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/config/schema.h"

namespace piper {
namespace {

std::string counted(std::size_t count) {
  return count == 1 ? "the parameter" : "all " + std::to_string(count) + " parameters";
}

class Checker {
 public:
  Checker(const Config& config, const ModelGraph& model)
      : config_(config), groups_(config.optimizer.groups), model_(model) {}

  Expected<Diagnostics> check() {
    find_groups();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      check_group(g);
    }
    check_frozen();
    if (!errors_.empty()) {
      return fail(std::move(errors_));
    }
    check_defaults();
    check_graph();
    return std::move(remarks_);
  }

 private:
  void find_groups() {
    for (const Parameter& parameter : model_.parameters) {
      names_.push_back(parameter.name);
      group_of_.push_back(optimizer_group(config_, parameter.name));
    }
  }

  Location place(std::size_t group, std::size_t glob) const {
    return config_.where(glob_key(group, glob));
  }

  // Ascending.
  std::vector<std::size_t> matching(const std::string& glob) const {
    std::vector<std::size_t> found;
    for (std::size_t p = 0; p < names_.size(); ++p) {
      if (glob_matches(glob, names_[p])) {
        found.push_back(p);
      }
    }
    return found;
  }

  void check_group(std::size_t g) {
    const OptimizerGroup& group = groups_[g];
    const bool left = std::find(group_of_.begin(), group_of_.end(), g) != group_of_.end();
    bool all_match = true;
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const std::vector<std::size_t> found = matching(group.parameters[i]);
      if (found.empty()) {
        all_match = false;
        no_match(g, i);
      } else if (left && std::all_of(found.begin(), found.end(),
                                     [&](std::size_t p) { return group_of_[p] < g; })) {
        remarks_.push_back(
            covered(warning("config.no_effect",
                            "[[optimizer.group]]: '" + group.parameters[i] +
                                "' has no effect: " + counted(found.size()) + " that it matches " +
                                (found.size() == 1 ? "is" : "are") + " in an earlier group",
                            place(g, i)),
                    found));
      }
    }
    if (!left && all_match) {
      const std::vector<std::size_t> found = matching_any(group);
      errors_.push_back(covered(
          error("optimizer.group",
                "[[optimizer.group]]: expected a parameter that no earlier group has, got none: " +
                    counted(found.size()) + " that this one matches " +
                    (found.size() == 1 ? "is" : "are") + " in earlier ones",
                group.where),
          found));
    } else if (left && is_frozen(g)) {
      remarks_.push_back(warning("config.no_effect",
                                 "[[optimizer.group]] has no effect: model.freeze has every "
                                 "parameter that it matches",
                                 group.where));
    }
  }

  std::vector<std::size_t> matching_any(const OptimizerGroup& group) const {
    std::vector<std::size_t> found;
    for (const std::string& glob : group.parameters) {
      const std::vector<std::size_t> more = matching(glob);
      found.insert(found.end(), more.begin(), more.end());
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void no_match(std::size_t g, std::size_t i) {
    const std::string& glob = groups_[g].parameters[i];
    errors_.push_back(
        error("optimizer.group",
              "[[optimizer.group]]: no parameter matches '" + glob + "'" + nearest_to(glob),
              place(g, i)));
  }

  // Of a few names all are shown; of many the nearest, without the glob's stars.
  std::string nearest_to(std::string glob) const {
    glob.erase(std::remove(glob.begin(), glob.end(), '*'), glob.end());
    const std::string near = nearest(glob, names_);
    if (!near.empty() || names_.empty()) {
      return near.empty() ? "" : " (did you mean '" + near + "'?)";
    }
    constexpr std::size_t kShown = 3;
    std::string known;
    for (std::size_t p = 0; p < std::min(kShown, names_.size()); ++p) {
      known += (p == 0 ? "" : ", ") + names_[p];
    }
    return " (known: " + known +
           (names_.size() > kShown
                ? " and " + std::to_string(names_.size() - kShown) + " more, see `piper capture`)"
                : ")");
  }

  // Names the earlier groups.
  Diagnostic covered(Diagnostic diagnostic, const std::vector<std::size_t>& parameters) const {
    std::vector<std::uint32_t> earlier;
    for (const std::size_t p : parameters) {
      if (std::find(earlier.begin(), earlier.end(), group_of_[p]) == earlier.end()) {
        earlier.push_back(group_of_[p]);
        diagnostic.note("'" + names_[p] + "' is in this one", groups_[group_of_[p]].where);
      }
    }
    return diagnostic;
  }

  bool is_frozen(std::size_t g) const {
    for (std::size_t p = 0; p < names_.size(); ++p) {
      if (group_of_[p] == g && !model_.parameters[p].frozen) {
        return false;
      }
    }
    return true;
  }

  void check_frozen() {
    const auto& all = model_.parameters;
    const bool nothing_left =
        !all.empty() && std::all_of(all.begin(), all.end(), [](const auto& p) { return p.frozen; });
    if (nothing_left) {
      errors_.push_back(error("model.freeze",
                              "model.freeze: expected a parameter that is left to train, got " +
                                  counted(all.size()) + " frozen",
                              config_.where("model.freeze")));
    }
  }

  // Whether a trained parameter takes what `[optimizer]` itself says.
  template <typename Member>
  bool uses_default(Member member) const {
    for (std::size_t p = 0; p < names_.size(); ++p) {
      const bool own = group_of_[p] < groups_.size() && groups_[group_of_[p]].*member;
      if (!own && !model_.parameters[p].frozen) {
        return true;
      }
    }
    return false;
  }

  void check_defaults() {
    const bool uses_lr = uses_default(&OptimizerGroup::lr);
    shadowed("optimizer.lr", uses_lr);
    shadowed("optimizer.weight_decay", uses_default(&OptimizerGroup::weight_decay));
    const bool learns =
        (uses_lr && config_.optimizer.lr != 0) ||
        std::any_of(groups_.begin(), groups_.end(),
                    [](const OptimizerGroup& group) { return group.lr.value_or(0) != 0; });
    if (!learns && !model_.parameters.empty()) {
      remarks_.push_back(warning("config.less_effect",
                                 "optimizer.lr: a learning rate of 0 for every parameter: no step "
                                 "changes a weight",
                                 config_.where("optimizer.lr")));
    }
  }

  // A graph of a file has the length of a row and the type that it was captured with.
  void check_graph() {
    if (config_.model.graph.empty()) {
      return;
    }
    const auto differs = [&](const std::string& path, const std::string& graph) {
      if (is_given(config_, path)) {
        remarks_.push_back(warning("config.no_effect",
                                   path + " has no effect: model.graph was captured with " + graph,
                                   config_.where(path)));
      }
    };
    if (valid(model_.labels)) {
      const std::vector<Affine>& shape = model_.value(model_.labels).shape;
      if (shape.size() > 1 && shape[1].fixed != config_.training.seq_len) {
        differs("training.seq_len", std::to_string(shape[1].fixed));
      }
    }
    const DType dtype =
        model_.parameters.empty() ? config_.training.dtype : model_.parameters.front().dtype;
    if (dtype != config_.training.dtype) {
      differs("training.dtype", toml_text(to_string(dtype)));
    }
  }

  void shadowed(const std::string& path, bool used) {
    if (!used && !model_.parameters.empty() && is_given(config_, path)) {
      remarks_.push_back(warning("config.no_effect",
                                 path + " has no effect: every parameter that is trained is in an "
                                        "[[optimizer.group]] with one of its own",
                                 config_.where(path)));
    }
  }

  const Config& config_;
  const std::vector<OptimizerGroup>& groups_;
  const ModelGraph& model_;
  std::vector<std::string> names_;       // by ParameterId
  std::vector<std::uint32_t> group_of_;  // by ParameterId; groups_.size(): none
  Diagnostics errors_, remarks_;
};

}  // namespace

Expected<Diagnostics> check_parameters(const Config& config, const ModelGraph& model) {
  return Checker(config, model).check();
}

}  // namespace piper
