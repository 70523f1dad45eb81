#include "tests/support/symbolic_step.h"

#include <algorithm>

namespace piper::test {
namespace {

enum Kind : std::int64_t { input, count, forward, output, backward, of_input, of_parameter, loss };

void append(std::vector<std::int64_t>& key, const Sum& sum) {
  key.push_back(static_cast<std::int64_t>(sum.size()));
  key.insert(key.end(), sum.begin(), sum.end());
}

}  // namespace

void add(Sum& to, const Sum& more) {
  to.insert(to.end(), more.begin(), more.end());
  std::sort(to.begin(), to.end());
}

Symbol Symbols::make(std::vector<std::int64_t> key) {
  return known_.try_emplace(std::move(key), static_cast<Symbol>(known_.size())).first->second;
}

Block cut(Block whole, std::int64_t parts, std::int64_t part) {
  const std::int64_t each = whole.count / parts, more = whole.count % parts;
  return {whole.begin + part * each + std::min(part, more), each + (part < more ? 1 : 0)};
}

RegionRules::RegionRules(const ModelGraph& model)
    : model_(model), wants_gradient_(model.values.size(), false) {
  for (const Region& region : model.regions) {
    bool any = false;
    for (const ParameterId parameter : region.parameters) {
      any = any || !model.parameter(parameter).frozen;
    }
    for (const ValueId value : region.inputs) {
      any = any || wants_gradient_[index(value)];
    }
    for (const ValueId value : region.outputs) {
      wants_gradient_[index(value)] = any && is_floating(model.value(value).dtype);
    }
  }
}

Symbol RegionRules::input(ValueId value, Block rows, std::int64_t step) {
  return symbols_.make({Kind::input, index(value), rows.begin, rows.count, step});
}

Symbol RegionRules::count(const Sum& labels) {
  std::vector<std::int64_t> key{Kind::count};
  append(key, labels);
  return symbols_.make(std::move(key));
}

Symbol RegionRules::forward(RegionId region, const std::vector<Sum>& arguments,
                            const std::vector<std::int64_t>& versions) {
  std::vector<std::int64_t> key{Kind::forward, index(region)};
  key.insert(key.end(), versions.begin(), versions.end());
  for (const Sum& argument : arguments) {
    append(key, argument);
  }
  return symbols_.make(std::move(key));
}

Symbol RegionRules::output(Symbol forward, std::size_t i) {
  return symbols_.make({Kind::output, forward, static_cast<std::int64_t>(i)});
}

bool RegionRules::has_backward(RegionId id, const std::vector<Sum>& gradients) const {
  const Region& region = model_.region(id);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].empty() && wants_gradient(region.outputs[i])) {
      return true;
    }
  }
  return false;
}

Symbol RegionRules::backward(RegionId region, Symbol forward,
                             const std::vector<std::int64_t>& versions,
                             const std::vector<Sum>& gradients) {
  std::vector<std::int64_t> key{Kind::backward, index(region), forward};
  key.insert(key.end(), versions.begin(), versions.end());
  for (const Sum& gradient : gradients) {
    append(key, gradient);
  }
  return symbols_.make(std::move(key));
}

Symbol RegionRules::gradient_of_input(Symbol backward, std::size_t i) {
  return symbols_.make({Kind::of_input, backward, static_cast<std::int64_t>(i)});
}

Symbol RegionRules::gradient_of_parameter(Symbol backward, std::size_t i) {
  return symbols_.make({Kind::of_parameter, backward, static_cast<std::int64_t>(i)});
}

Symbol RegionRules::gradient_of_loss(Symbol count) {
  return symbols_.make({Kind::loss, count});
}

// Each once: those that are not frozen have the step's, the others the first.
std::vector<std::int64_t> OneDeviceStep::versions(const Region& region, std::int64_t step) const {
  std::vector<std::int64_t> list;
  for (const ParameterId parameter : region.parameters) {
    list.push_back(trains_ && !model_.parameter(parameter).frozen ? step : 0);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

Symbol OneDeviceStep::value(ValueId id, Block rows, std::int64_t step) {
  const auto key = std::tuple{id, rows, step};
  if (const auto known = values_.find(key); known != values_.end()) {
    return known->second;
  }
  Symbol symbol = 0;
  if (model_.value(id).is_input()) {
    symbol = rules_.input(id, rows, step);
  } else {
    const RegionId producer = model_.value(id).producer;
    const Region& region = model_.region(producer);
    std::vector<Sum> arguments;
    for (const ValueId argument : region.inputs) {
      arguments.push_back({value(argument, rows, step)});
    }
    const auto place = std::find(region.outputs.begin(), region.outputs.end(), id);
    symbol = rules_.output(rules_.forward(producer, arguments, versions(region, step)),
                           static_cast<std::size_t>(place - region.outputs.begin()));
  }
  values_[key] = symbol;
  return symbol;
}

Symbol OneDeviceStep::count(std::int64_t step) {
  Sum labels;
  for (const Block rows : blocks_) {
    add(labels, {value(model_.labels, rows, step)});
  }
  return rules_.count(labels);
}

Sum OneDeviceStep::losses(std::int64_t step) {
  Sum losses;
  for (const Block rows : blocks_) {
    add(losses, {value(model_.loss, rows, step)});
  }
  return losses;
}

void OneDeviceStep::backward(Block rows, std::int64_t step, std::vector<Sum>& of_parameters) {
  std::vector<Sum> of_values(model_.values.size());
  of_values[index(model_.loss)] = {rules_.gradient_of_loss(count(step))};
  for (std::size_t r = model_.regions.size(); r-- > 0;) {
    const Region& region = model_.regions[r];
    const RegionId id{static_cast<std::uint32_t>(r)};
    std::vector<Sum> arguments, gradients;
    for (const ValueId argument : region.inputs) {
      arguments.push_back({value(argument, rows, step)});
    }
    for (const ValueId output : region.outputs) {
      gradients.push_back(of_values[index(output)]);
    }
    if (!rules_.has_backward(id, gradients)) {
      continue;
    }
    const std::vector<std::int64_t> own = this->versions(region, step);
    const Symbol back = rules_.backward(id, rules_.forward(id, arguments, own), own, gradients);
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
      if (rules_.wants_gradient(region.inputs[i])) {
        add(of_values[index(region.inputs[i])], {rules_.gradient_of_input(back, i)});
      }
    }
    for (std::size_t i = 0; i < region.parameters.size(); ++i) {
      if (!model_.parameter(region.parameters[i]).frozen) {
        add(of_parameters[index(region.parameters[i])], {rules_.gradient_of_parameter(back, i)});
      }
    }
  }
}

const Sum& OneDeviceStep::gradient(ParameterId parameter, std::int64_t step) {
  std::vector<Sum>& all = gradients_[step];
  if (all.empty()) {
    all.resize(model_.parameters.size());
    for (const Block rows : blocks_) {
      backward(rows, step, all);
    }
  }
  return all[index(parameter)];
}

}  // namespace piper::test
