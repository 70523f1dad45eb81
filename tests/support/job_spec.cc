#include "tests/support/job_spec.h"

#include <algorithm>
#include <numeric>

namespace piper::test {
namespace {

constexpr std::int64_t kSeq = 4, kDim = 8, kVocab = 16;

Filter equals(std::string tag, std::uint32_t value) {
  return {{{std::move(tag), Condition::Kind::equals, {value}}}, {}};
}

class ModelMaker {
 public:
  explicit ModelMaker(const JobSpec& spec) : spec_(spec) {}

  ModelGraph run() {
    model_.name = "spec";
    layer_ = model_.intern_tag("layer");
    experts_ = model_.intern_tag("EP");
    const ValueId tokens = value("tokens", DType::int64, {{1, 0}, {0, kSeq}}, none<RegionId>());
    model_.labels = value("labels", DType::int64, {{1, 0}, {0, kSeq}}, none<RegionId>());
    const bool has_second = std::any_of(spec_.layers.begin(), spec_.layers.end(),
                                        [](const LayerSpec& l) { return l.reads.empty(); });
    const ValueId second = has_second
                               ? value("features", DType::float32, hidden(), none<RegionId>())
                               : none<ValueId>();
    const ParameterId embedding = parameter("embed.weight", {kVocab, kDim});
    model_.parameters[index(embedding)].frozen = spec_.has_frozen_embedding;
    std::vector<ValueId> nodes{value("", DType::float32, hidden(), next())};
    region({}, {embedding}, {tokens}, nodes[0]);
    std::vector<bool> is_read(spec_.layers.size() + 1, false);
    for (std::uint32_t i = 0; i < spec_.layers.size(); ++i) {
      const LayerSpec& layer = spec_.layers[i];
      std::vector<ParameterId> parameters;
      for (std::uint32_t w = 0; w < layer.weights; ++w) {
        parameters.push_back(
            parameter("layers." + std::to_string(i) + "." + std::to_string(w), {kDim, kDim}));
        model_.parameters.back().frozen = layer.frozen;
      }
      if (layer.tied) {
        parameters.push_back(embedding);
      }
      std::vector<ValueId> inputs;
      for (const std::uint32_t node : layer.reads) {
        inputs.push_back(nodes[node]);
        is_read[node] = true;
      }
      if (inputs.empty()) {
        inputs.push_back(second);
      }
      std::vector<Tag> tags{{layer_, i}};
      if (layer.experts) {
        tags.push_back({experts_, i});
      }
      nodes.push_back(value("", DType::float32, hidden(), next()));
      region(std::move(tags), std::move(parameters), std::move(inputs), nodes.back());
    }
    std::vector<ValueId> inputs;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      if (!is_read[i] && (i == 0 || !spec_.layers[i - 1].dead)) {
        inputs.push_back(nodes[i]);
      }
    }
    if (inputs.empty()) {
      inputs.push_back(nodes[0]);
    }
    inputs.push_back(model_.labels);
    const ParameterId head =
        spec_.has_tied_head ? embedding : parameter("head.weight", {kVocab, kDim});
    model_.loss = value("", DType::float32, {}, next());
    region({}, {head}, std::move(inputs), model_.loss);
    return std::move(model_);
  }

 private:
  static std::vector<Affine> hidden() { return {{1, 0}, {0, kSeq}, {0, kDim}}; }
  RegionId next() const { return RegionId{static_cast<std::uint32_t>(model_.regions.size())}; }
  ValueId value(std::string name, DType dtype, std::vector<Affine> shape, RegionId producer) {
    model_.values.push_back({std::move(name), dtype, std::move(shape), producer});
    return ValueId{static_cast<std::uint32_t>(model_.values.size() - 1)};
  }
  ParameterId parameter(std::string name, std::vector<std::int64_t> shape) {
    Parameter p;
    p.name = std::move(name);
    p.shape = std::move(shape);
    model_.parameters.push_back(std::move(p));
    return ParameterId{static_cast<std::uint32_t>(model_.parameters.size() - 1)};
  }
  void region(std::vector<Tag> tags, std::vector<ParameterId> parameters,
              std::vector<ValueId> inputs, ValueId output) {
    Region r;
    r.tags = std::move(tags);
    r.parameters = std::move(parameters);
    r.inputs = std::move(inputs);
    r.outputs = {output};
    r.flops = {2 * kSeq * kDim * kDim, 0};
    r.saved_bytes = {2 * kSeq * kDim * 4, 0};
    r.transient_bytes = {64, 8};
    r.where = {"spec.cc", static_cast<std::uint32_t>(10 + model_.regions.size()), 0};
    model_.regions.push_back(std::move(r));
  }

  const JobSpec& spec_;
  ModelGraph model_;
  TagId layer_{}, experts_{};
};

class ProposalMaker {
 public:
  ProposalMaker(const JobSpec& spec, const ModelGraph& model) : spec_(spec), model_(model) {
    stage_of_.push_back(0);
    for (const LayerSpec& layer : spec.layers) {
      stage_of_.push_back(layer.stage);
    }
    stage_of_.push_back(spec.head_stage);
    stages_ = *std::max_element(stage_of_.begin(), stage_of_.end()) + 1;
  }

  Proposal run() {
    proposal_.from = {"spec", {"job.toml", 7, 1}};
    proposal_.claims = {{Claim::Kind::axis, "pp", proposal_.from}};
    if (spec_.is_split_by_directive) {
      say(SplitDirective{{}, "MB", spec_.microbatches});
    }
    tag();
    split_backward();
    place();
    replicate();
    const bool has_one_stream =
        std::any_of(spec_.policies.begin(), spec_.policies.end(),
                    [](const PolicySpec& policy) { return policy.has_one_stream; });
    if (spec_.ep > 0) {
      say(ShardDirective{{{{"EP", Condition::Kind::present, {}}}, {}},
                         groups(spec_.ep, false),
                         has_one_stream ? "data" : "expert"});
    }
    order();
    return std::move(proposal_);
  }

 private:
  template <typename What>
  void say(What what) {
    proposal_.directives.push_back({std::move(what), proposal_.from});
  }

  std::uint32_t rank(std::uint32_t place, std::uint32_t replica) const {
    return spec_.is_interleaved ? replica * spec_.pp + place : place * spec_.dp + replica;
  }
  Ranks ranks(std::uint32_t place) const {
    Ranks list;
    for (std::uint32_t d = 0; d < spec_.dp; ++d) {
      list.ranks.push_back(rank(place, d));
    }
    return list;
  }
  std::uint32_t place_of(std::uint32_t stage) const {
    const std::uint32_t lap = stage / spec_.pp, at = stage % spec_.pp;
    return spec_.is_folded && lap % 2 == 1 ? spec_.pp - 1 - at : at;
  }
  std::uint32_t half() const { return (spec_.microbatches + 1) / 2; }
  std::uint32_t place_of(std::uint32_t stage, std::uint32_t microbatch) const {
    const bool is_back = spec_.is_bidirectional && microbatch >= half();
    return is_back ? spec_.pp - 1 - place_of(stage) : place_of(stage);
  }
  // Groups of `size` replicas of each place.
  Family groups(std::uint32_t size, bool is_strided) const {
    Family family;
    const std::uint32_t count = spec_.dp / size;
    for (std::uint32_t p = 0; p < spec_.pp; ++p) {
      for (std::uint32_t g = 0; g < count; ++g) {
        Ranks group;
        for (std::uint32_t i = 0; i < size; ++i) {
          group.ranks.push_back(rank(p, is_strided ? i * count + g : g * size + i));
        }
        family.groups.push_back(std::move(group));
      }
    }
    return family;
  }
  bool is_used(std::uint32_t stage) const {
    return std::find(stage_of_.begin(), stage_of_.end(), stage) != stage_of_.end();
  }

  void tag() {
    for (std::uint32_t s = 0; s < stages_; ++s) {
      Condition regions{"REGION", Condition::Kind::in_set, {}};
      for (std::uint32_t r = 0; r < stage_of_.size(); ++r) {
        if (stage_of_[r] == s) {
          regions.values.push_back(r);
        }
      }
      if (!regions.values.empty()) {
        say(TagDirective{{{regions}, {}}, "PP", s});
      }
    }
  }

  bool is_split(std::uint32_t stage) const {
    return spec_.split_backward == JobSpec::Split::all ||
           (spec_.split_backward == JobSpec::Split::even && stage % 2 == 0);
  }
  void split_backward() {
    for (std::uint32_t s = 0; s < stages_; ++s) {
      if (is_used(s) && is_split(s)) {
        say(SplitBackwardDirective{equals("PP", s)});
      }
    }
  }

  void place() {
    for (std::uint32_t s = 0; s < stages_; ++s) {
      if (!is_used(s)) {
        continue;
      }
      if (!spec_.is_bidirectional) {
        say(PlaceDirective{equals("PP", s), ranks(place_of(s)), "compute"});
        continue;
      }
      for (const bool is_back : {false, true}) {
        Filter filter = equals("PP", s);
        filter.conditions.push_back(
            {"MB",
             Condition::Kind::in_range,
             {is_back ? half() : 0, is_back ? spec_.microbatches - 1 : half() - 1}});
        say(PlaceDirective{filter, ranks(place_of(s, is_back ? half() : 0)), "compute"});
      }
    }
  }

  void replicate() {
    for (std::uint32_t s = 0; s < stages_ && !spec_.policies.empty(); ++s) {
      if (!is_used(s)) {
        continue;
      }
      const PolicySpec& policy = spec_.policies[s % spec_.policies.size()];
      ReplicateDirective what;
      what.filter = spec_.policies.size() == 1 ? Filter{} : equals("PP", s);
      what.shard_optimizer = policy.zero >= 1;
      what.shard_grads = policy.zero >= 2;
      what.shard_params = policy.zero >= 3;
      what.bucket_bytes = policy.bucket_bytes;
      what.keep_gathered = policy.keep_gathered;
      what.reduce = policy.reduce;
      what.prefetch = policy.prefetch;
      what.family = policy.group > 0 ? groups(policy.group, policy.is_strided) : Family{};
      if (policy.has_one_stream) {
        what.reduce_stream = what.gather_stream = "data";
      }
      say(std::move(what));
      if (spec_.policies.size() == 1) {
        return;
      }
    }
  }

  void order() {
    using Order = JobSpec::Order;
    const auto group = [](std::vector<Pass> passes, std::uint32_t m) {
      Filter filter = equals("MB", m);
      filter.passes = std::move(passes);
      return filter;
    };
    const std::vector<Pass> backwards =
        spec_.split_backward == JobSpec::Split::all
            ? std::vector{Pass::backward_input, Pass::backward_weight}
            : std::vector{Pass::backward, Pass::backward_input, Pass::backward_weight};
    switch (spec_.order) {
      case Order::none:
        return;
      case Order::backward_first:
      case Order::forward_first:
        return chains();
      case Order::by_microbatch: {
        OrderDirective what;
        for (std::uint32_t m = 0; m < spec_.microbatches; ++m) {
          what.groups.push_back({group({Pass::forward}, m)});
        }
        return say(std::move(what));
      }
      case Order::by_pass:
        return say(OrderDirective{{{{{}, {Pass::forward}}}, {{{}, backwards}}}});
      case Order::mixed:
        if (spec_.microbatches > 1) {
          say(OrderDirective{{{group({Pass::forward}, 0)},
                              {group(backwards, 0), group({Pass::forward}, 1)},
                              {group(backwards, 1)}}});
        }
        return;
    }
  }

  // What each place does, found by running stages tick by tick: one action a place and tick.
  void chains() {
    const std::vector<std::vector<std::uint32_t>> before = stages_before();
    const std::uint32_t microbatches = spec_.microbatches;
    std::vector<std::vector<Action>> actions(spec_.pp);
    std::vector<std::vector<int>> forward(stages_, std::vector<int>(microbatches, -1));
    std::vector<std::vector<int>> backward = forward, weight = forward;
    const auto is_done = [](int at, int tick) { return at >= 0 && at < tick; };
    for (int tick = 0; tick < static_cast<int>(8 * (stages_ + 1) * (microbatches + 1)); ++tick) {
      for (std::uint32_t p = 0; p < spec_.pp; ++p) {
        const auto try_one = [&](Pass pass) {
          for (std::uint32_t m = 0; m < microbatches; ++m) {
            for (std::uint32_t s = 0; s < stages_; ++s) {
              if (!is_used(s) || place_of(s, m) != p) {
                continue;
              }
              if (pass == Pass::forward && forward[s][m] < 0 &&
                  std::all_of(before[s].begin(), before[s].end(),
                              [&](std::uint32_t b) { return is_done(forward[b][m], tick); })) {
                forward[s][m] = tick;
                actions[p].push_back({s, m, Pass::forward});
                return true;
              }
              if (pass == Pass::backward && backward[s][m] < 0 && is_done(forward[s][m], tick) &&
                  readers_are_back(before, backward, s, m, tick)) {
                backward[s][m] = tick;
                weight[s][m] = is_split(s) ? -1 : tick;
                actions[p].push_back({s, m, is_split(s) ? Pass::backward_input : Pass::backward});
                return true;
              }
              if (pass == Pass::backward_weight && is_split(s) && weight[s][m] < 0 &&
                  is_done(backward[s][m], tick)) {
                weight[s][m] = tick;
                actions[p].push_back({s, m, Pass::backward_weight});
                return true;
              }
            }
          }
          return false;
        };
        const bool forward_first = spec_.order == JobSpec::Order::forward_first;
        try_one(forward_first ? Pass::forward : Pass::backward) ||
            try_one(forward_first ? Pass::backward : Pass::forward) ||
            try_one(Pass::backward_weight);
      }
    }
    for (std::uint32_t p = 0; p < spec_.pp; ++p) {
      for (std::size_t i = 0; i + 1 < actions[p].size() && spec_.has_overlap; i += 2) {
        actions[p][i].overlap = actions[p][i + 1].overlap = static_cast<std::uint32_t>(i / 2 + 1);
      }
      if (!actions[p].empty()) {
        say(OrderChainDirective{ranks(p), std::move(actions[p])});
      }
    }
  }

  static bool readers_are_back(const std::vector<std::vector<std::uint32_t>>& before,
                               const std::vector<std::vector<int>>& backward, std::uint32_t stage,
                               std::uint32_t m, int tick) {
    for (std::uint32_t s = 0; s < before.size(); ++s) {
      const bool reads = std::find(before[s].begin(), before[s].end(), stage) != before[s].end();
      if (reads && (backward[s][m] < 0 || backward[s][m] >= tick)) {
        return false;
      }
    }
    return true;
  }

  // By stage: the other stages that it reads from.
  std::vector<std::vector<std::uint32_t>> stages_before() const {
    std::vector<std::vector<std::uint32_t>> before(stages_);
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      for (const ValueId input : model_.regions[r].inputs) {
        if (model_.value(input).is_input()) {
          continue;
        }
        const std::uint32_t from = stage_of_[index(model_.value(input).producer)];
        std::vector<std::uint32_t>& list = before[stage_of_[r]];
        if (from != stage_of_[r] && std::find(list.begin(), list.end(), from) == list.end()) {
          list.push_back(from);
        }
      }
    }
    return before;
  }

  const JobSpec& spec_;
  const ModelGraph& model_;
  Proposal proposal_;
  std::vector<std::uint32_t> stage_of_;  // by region
  std::uint32_t stages_ = 1;
};

}  // namespace

std::string to_string(const JobSpec& spec) {
  std::string text = "pp " + std::to_string(spec.pp) + " dp " + std::to_string(spec.dp) + " M " +
                     std::to_string(spec.microbatches);
  const auto number = [&](const char* name, std::uint64_t value) {
    text += value == 0 ? "" : ' ' + std::string(name) + ' ' + std::to_string(value);
  };
  const auto flag = [&](const char* name, bool is_set) {
    text += is_set ? ' ' + std::string(name) : "";
  };
  number("extra_rows", spec.extra_rows);
  number("ep", spec.ep);
  flag("folded", spec.is_folded);
  flag("bidirectional", spec.is_bidirectional);
  flag("interleaved", spec.is_interleaved);
  flag("split", spec.split_backward == JobSpec::Split::all);
  flag("split_even", spec.split_backward == JobSpec::Split::even);
  constexpr const char* kOrders[] = {"none",          "backward_first", "forward_first",
                                     "by_microbatch", "by_pass",        "mixed"};
  text += " order " + std::string(kOrders[static_cast<std::size_t>(spec.order)]);
  flag("overlap", spec.has_overlap);
  flag("split_directive", spec.is_split_by_directive);
  flag("analytical", spec.is_analytical);
  flag("recompute", spec.recompute == JobSpec::Recompute::full);
  flag("recompute_odd", spec.recompute == JobSpec::Recompute::odd);
  for (const PolicySpec& policy : spec.policies) {
    text += " [zero " + std::to_string(policy.zero);
    number("bucket", policy.bucket_bytes);
    flag("keep_step", policy.keep_gathered == Span::step);
    flag("reduce_step", policy.reduce == Span::step);
    number("prefetch", policy.prefetch);
    number("group", policy.group);
    flag("strided", policy.is_strided);
    flag("one_stream", policy.has_one_stream);
    text += "]";
  }
  flag("tied_head", spec.has_tied_head);
  flag("frozen_embedding", spec.has_frozen_embedding);
  text += " layers";
  for (const LayerSpec& layer : spec.layers) {
    text += " (";
    for (std::size_t i = 0; i < layer.reads.size(); ++i) {
      text += (i == 0 ? "" : ",") + std::to_string(layer.reads[i]);
    }
    text += "@" + std::to_string(layer.stage);
    if (layer.weights != 1) {
      number("weights", layer.weights);
      flag("no_weights", layer.weights == 0);
    }
    flag("experts", layer.experts);
    flag("frozen", layer.frozen);
    flag("tied", layer.tied);
    flag("dead", layer.dead);
    text += ")";
  }
  return text + " head@" + std::to_string(spec.head_stage);
}

namespace {

void recompute(const JobSpec& spec, ActivationCheckpointConfig& config) {
  using Mode = ActivationCheckpointConfig::Mode;
  if (spec.recompute == JobSpec::Recompute::full) {
    config.mode = Mode::full;
  } else if (spec.recompute == JobSpec::Recompute::odd && spec.layers.size() > 1) {
    config.mode = Mode::selective;
    RawValue odd;
    odd.kind = RawValue::Kind::list;
    for (std::uint32_t i = 1; i < spec.layers.size(); i += 2) {
      RawValue& layer = odd.items.emplace_back();
      layer.kind = RawValue::Kind::integer;
      layer.integer = i;
    }
    config.filter.entries.push_back({"layer", {}, std::move(odd)});
  }
}

}  // namespace

SpecJob make_job(const JobSpec& spec) {
  SpecJob job;
  job.config.file = "job.toml";
  job.config.mesh.axes = {{"pp", spec.pp}, {"dp", spec.dp}};
  job.config.training.microbatches = spec.is_split_by_directive ? 1 : spec.microbatches;
  job.config.training.global_batch_size =
      static_cast<std::int64_t>(spec.dp) * spec.microbatches + spec.extra_rows;
  job.config.cost.model = spec.is_analytical ? "analytical" : "unit";
  recompute(spec, job.config.activation_checkpoint);
  job.config.strategies.push_back({"spec", "spec", {}, {"job.toml", 7, 1}});
  job.model = ModelMaker(spec).run();
  job.proposal = ProposalMaker(spec, job.model).run();
  return job;
}

Expected<Plans> plan(const SpecJob& job) {
  return piper::plan(job.config, job.model, {job.proposal});
}

}  // namespace piper::test
