// sample_job and shrink.
#include <algorithm>
#include <random>

#include "tests/support/job_spec.h"

namespace piper::test {
namespace {

class Sampler {
 public:
  explicit Sampler(std::uint32_t seed) : random_(seed * 2654435761u + 17) {}

  JobSpec run() {
    JobSpec spec;
    spec.pp = one_of({1, 1, 2, 2, 2, 3, 4});
    spec.dp = one_of({1, 1, 2, 2, 3, 4});
    spec.microbatches = one_of({1, 2, 2, 3, 4, 5});
    spec.extra_rows = below(spec.dp * spec.microbatches + 1);
    spec.is_bidirectional = spec.pp > 1 && spec.microbatches > 1 && chance(4);
    spec.is_folded = chance(3);
    spec.is_interleaved = chance(4);
    spec.has_tied_head = chance(5);
    spec.has_frozen_embedding = chance(6);
    const bool has_experts = chance(3);
    layers(spec, has_experts);
    if (has_experts && spec.dp > 1) {
      spec.ep = spec.dp == 4 ? one_of({2, 4}) : spec.dp;
    }
    policies(spec);
    spec.split_backward = static_cast<JobSpec::Split>(one_of({0, 0, 1, 1, 2}));
    spec.order = static_cast<JobSpec::Order>(one_of({0, 0, 1, 1, 1, 2, 3, 4, 5}));
    spec.has_overlap = chance(3);
    spec.is_split_by_directive = chance(4);
    spec.is_analytical = chance(4);
    spec.recompute = static_cast<JobSpec::Recompute>(one_of({0, 0, 0, 1, 2}));
    return spec;
  }

 private:
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(random_() >> 4) % bound;
  }
  bool chance(std::uint32_t n) { return below(n) == 0; }
  std::uint32_t one_of(std::initializer_list<std::uint32_t> list) {
    return list.begin()[below(static_cast<std::uint32_t>(list.size()))];
  }

  void layers(JobSpec& spec, bool has_experts) {
    const std::uint32_t stages = spec.pp * one_of({1, 1, 2});
    const std::uint32_t count = std::max(stages + below(3), 2U) - 1;
    const bool has_branches = chance(2);
    for (std::uint32_t i = 0; i < count; ++i) {
      LayerSpec layer;
      layer.reads = {i};
      if (has_branches && chance(3)) {
        layer.reads = {below(i + 1)};
      }
      if (has_branches && i > 0 && chance(4)) {
        const std::uint32_t other = below(i + 1);
        if (other != layer.reads[0]) {
          layer.reads.push_back(other);
        }
      }
      if (has_branches && chance(10)) {
        layer.reads.clear();
      }
      layer.stage = std::min((i + 1) * stages / (count + 1), stages - 1);
      if (chance(25)) {
        layer.stage = below(stages);  // off the beaten track: may be refused
      }
      layer.experts = has_experts && chance(2);
      layer.weights = layer.experts ? 4 : one_of({1, 1, 1, 0, 2});
      layer.frozen = chance(8);
      layer.tied = !layer.experts && chance(15);
      layer.dead = chance(20);
      spec.layers.push_back(std::move(layer));
    }
    spec.head_stage = stages - 1;
    // Mostly as models have them: experts between others of their own stage.
    for (std::uint32_t i = 0; i < count && !chance(6); ++i) {
      LayerSpec& layer = spec.layers[i];
      if (!layer.experts) {
        continue;
      }
      layer.reads = {i};
      layer.dead = false;
      layer.stage = i == 0 ? 0 : spec.layers[i - 1].stage;
      layer.experts = i == 0 || !spec.layers[i - 1].experts || chance(2);
      if (i + 1 < count) {
        spec.layers[i + 1].stage = layer.stage;
      }
    }
  }

  void policies(JobSpec& spec) {
    for (std::uint32_t i = 0; i < one_of({0, 1, 1, 1, 1, 2}); ++i) {
      PolicySpec policy;
      policy.zero = below(4);
      policy.bucket_bytes = one_of({0, 0, 1, 700, 1500});
      policy.keep_gathered = chance(3) ? Span::step : Span::chain;
      policy.reduce = chance(3) ? Span::step : Span::chain;
      policy.prefetch = one_of({1, 1, 0, 2, 3});
      const bool mixes_experts = spec.ep > 0;
      policy.group = spec.dp == 4 && chance(3) ? 2 : 0;
      policy.is_strided = policy.group > 0 && (chance(2) || mixes_experts);
      policy.has_one_stream = chance(5);
      spec.policies.push_back(policy);
      if (spec.policies.size() == 2) {
        break;
      }
    }
  }

  std::minstd_rand random_;
};

void remove_layer(JobSpec& spec, std::size_t i) {
  const std::vector<std::uint32_t> instead = spec.layers[i].reads;
  spec.layers.erase(spec.layers.begin() + static_cast<std::ptrdiff_t>(i));
  for (std::size_t j = i; j < spec.layers.size(); ++j) {
    std::vector<std::uint32_t> reads;
    const auto read = [&](std::uint32_t node) {
      if (std::find(reads.begin(), reads.end(), node) == reads.end()) {
        reads.push_back(node);
      }
    };
    for (const std::uint32_t node : spec.layers[j].reads) {
      if (node == i + 1) {
        std::for_each(instead.begin(), instead.end(), read);
      } else {
        read(node > i + 1 ? node - 1 : node);
      }
    }
    spec.layers[j].reads = std::move(reads);
  }
}

// All jobs that are one step smaller.
std::vector<JobSpec> smaller(const JobSpec& spec) {
  std::vector<JobSpec> list;
  const auto with = [&](auto change) {
    JobSpec other = spec;
    change(other);
    if (to_string(other) != to_string(spec)) {
      list.push_back(std::move(other));
    }
  };
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    with([&](JobSpec& s) { remove_layer(s, i); });
  }
  with([](JobSpec& s) { s.dp = s.dp == 4 && (s.ep != 4) ? 2 : s.dp; });
  with([](JobSpec& s) {
    s.dp = 1;
    s.ep = 0;
    for (PolicySpec& policy : s.policies) {
      policy.group = 0;
    }
  });
  with([](JobSpec& s) {
    s.pp -= s.pp > 1 ? 1 : 0;
    s.is_bidirectional = s.is_bidirectional && s.pp > 1;
    s.head_stage = std::min(s.head_stage, s.pp - 1);
    for (LayerSpec& layer : s.layers) {
      layer.stage = std::min(layer.stage, s.pp - 1);
    }
  });
  with([](JobSpec& s) {
    s.microbatches -= s.microbatches > 1 ? 1 : 0;
    s.is_bidirectional = s.is_bidirectional && s.microbatches > 1;
  });
  with([](JobSpec& s) { s.extra_rows = 0; });
  with([](JobSpec& s) { s.is_folded = false; });
  with([](JobSpec& s) { s.is_bidirectional = false; });
  with([](JobSpec& s) { s.is_interleaved = false; });
  with([](JobSpec& s) { s.ep = 0; });
  with([](JobSpec& s) { s.split_backward = JobSpec::Split::none; });
  with([](JobSpec& s) { s.order = JobSpec::Order::none; });
  with([](JobSpec& s) { s.has_overlap = false; });
  with([](JobSpec& s) { s.is_split_by_directive = false; });
  with([](JobSpec& s) { s.is_analytical = false; });
  with([](JobSpec& s) { s.recompute = JobSpec::Recompute::none; });
  with([](JobSpec& s) { s.has_tied_head = false; });
  with([](JobSpec& s) { s.has_frozen_embedding = false; });
  with([](JobSpec& s) { s.policies.clear(); });
  for (std::size_t i = 0; i < spec.policies.size(); ++i) {
    with(
        [&](JobSpec& s) { s.policies.erase(s.policies.begin() + static_cast<std::ptrdiff_t>(i)); });
    with([&](JobSpec& s) { s.policies[i] = PolicySpec{.zero = s.policies[i].zero}; });
    with([&](JobSpec& s) { s.policies[i].zero -= s.policies[i].zero > 0 ? 1 : 0; });
    with([&](JobSpec& s) { s.policies[i].group = 0; });
    with([&](JobSpec& s) { s.policies[i].bucket_bytes = 0; });
    with([&](JobSpec& s) { s.policies[i].prefetch = 1; });
    with([&](JobSpec& s) { s.policies[i].reduce = Span::chain; });
    with([&](JobSpec& s) { s.policies[i].keep_gathered = Span::chain; });
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    with([&](JobSpec& s) { s.layers[i].frozen = s.layers[i].tied = s.layers[i].dead = false; });
    with([&](JobSpec& s) {
      s.layers[i].experts = false;
      s.layers[i].weights = 1;
    });
    with([&](JobSpec& s) { s.layers[i].reads = {static_cast<std::uint32_t>(i)}; });
    with([&](JobSpec& s) { s.layers[i].stage = i == 0 ? 0 : s.layers[i - 1].stage; });
  }
  return list;
}

}  // namespace

JobSpec sample_job(std::uint32_t seed) {
  return Sampler(seed).run();
}

JobSpec shrink(JobSpec spec, const std::function<bool(const JobSpec&)>& fails) {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (JobSpec& candidate : smaller(spec)) {
      if (fails(candidate)) {
        spec = std::move(candidate);
        goes_on = true;
        break;
      }
    }
  }
  return spec;
}

}  // namespace piper::test
