#include "tests/support/plan_corpus.h"

#include <algorithm>

#include "core/directives/annotate.h"

namespace piper::test {
namespace {

using Order = JobSpec::Order;
using Split = JobSpec::Split;

// `layers` in a row over `stages`.
JobSpec chain(std::uint32_t pp, std::uint32_t dp, std::uint32_t microbatches, std::uint32_t stages,
              std::uint32_t layers = 4) {
  JobSpec spec;
  spec.pp = pp;
  spec.dp = dp;
  spec.microbatches = microbatches;
  spec.extra_rows = dp > 1 ? 1 : 0;
  for (std::uint32_t i = 0; i < layers; ++i) {
    spec.layers.push_back({.reads = {i}, .stage = (i + 1) * stages / (layers + 2)});
  }
  spec.head_stage = stages - 1;
  return spec;
}

// Layer `i` becomes experts, on the stage of its neighbours.
void add_experts(JobSpec& spec, std::uint32_t i, std::uint32_t ep) {
  spec.layers[i].experts = true;
  spec.layers[i].weights = 4;
  spec.layers[i].stage = i == 0 ? 0 : spec.layers[i - 1].stage;
  if (i + 1 < spec.layers.size()) {
    spec.layers[i + 1].stage = spec.layers[i].stage;
  }
  spec.ep = ep;
}

class Corpus {
 public:
  std::vector<JobSpec> run() {
    pipelines();
    shards();
    hybrids();
    experts();
    both_ways();
    folds();
    parameters();
    recomputed();
    filters();
    branches();
    return std::move(specs_);
  }

 private:
  void add(JobSpec spec) { specs_.push_back(std::move(spec)); }

  void pipelines() {
    for (const std::uint32_t pp : {1U, 2U, 3U, 4U}) {
      for (const std::uint32_t dp : {1U, 2U}) {
        for (const Order order : {Order::none, Order::backward_first, Order::forward_first}) {
          for (const Split split : {Split::none, Split::all}) {
            JobSpec spec = chain(pp, dp, pp + 1 - dp / 2, pp, 3);
            spec.order = order;
            spec.split_backward = split;
            add(spec);
          }
        }
      }
    }
  }

  void shards() {
    for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
      for (const std::uint64_t bucket_bytes : {0U, 1U, 700U}) {
        for (const std::uint32_t pp : {1U, 2U}) {
          JobSpec spec = chain(pp, bucket_bytes == 700 ? 3 : 2, 2, pp);
          spec.policies = {{.zero = zero, .bucket_bytes = bucket_bytes}};
          spec.order = pp == 2 ? Order::backward_first : Order::none;
          add(spec);
        }
      }
    }
    for (const std::uint32_t zero : {2U, 3U}) {
      for (const Span keep : {Span::chain, Span::step}) {
        for (const Span reduce : {Span::chain, Span::step}) {
          for (const std::uint32_t prefetch : {0U, 1U, 2U}) {
            JobSpec spec = chain(1, 2, 2, 1, 3);
            spec.policies = {{.zero = zero,
                              .bucket_bytes = 1,
                              .keep_gathered = keep,
                              .reduce = reduce,
                              .prefetch = prefetch,
                              .has_one_stream = prefetch == 2}};
            spec.split_backward = prefetch == 0 ? Split::all : Split::none;
            add(spec);
          }
        }
      }
    }
  }

  void hybrids() {
    for (const std::uint32_t zero : {1U, 2U, 3U}) {
      for (const bool is_strided : {false, true}) {
        for (const std::uint32_t pp : {1U, 2U}) {
          JobSpec spec = chain(pp, 4, 2, pp, 2);
          spec.policies = {{.zero = zero, .group = 2, .is_strided = is_strided}};
          spec.is_interleaved = is_strided;
          add(spec);
        }
      }
    }
    for (const std::uint32_t pp : {1U, 2U}) {  // two policies
      JobSpec spec = chain(pp, 2, 2, 2, 4);
      spec.policies = {{.zero = 3}, {.zero = 1, .reduce = Span::step}};
      add(spec);
      spec.policies = {{.zero = 2, .bucket_bytes = 1}, {}};
      add(spec);
    }
  }

  void experts() {
    for (const std::uint32_t zero : {0U, 1U, 2U, 3U}) {
      for (const std::uint32_t pp : {1U, 2U}) {
        for (const std::uint32_t ep : {2U, 4U}) {
          JobSpec spec = chain(pp, ep == 2 && pp == 2 ? 4 : ep, 2, pp, 3);
          add_experts(spec, 1, ep);
          spec.policies = {{.zero = zero}};
          spec.split_backward = ep == 2 ? Split::none : Split::all;
          add(spec);
        }
      }
    }
    for (const bool has_bucket_each : {false, true}) {  // two expert layers in a row, and apart
      JobSpec spec = chain(1, 2, 2, 1, 4);
      add_experts(spec, 1, 2);
      add_experts(spec, 2, 2);
      spec.policies = {{.zero = 0, .bucket_bytes = has_bucket_each ? 1U : 0U}};
      add(spec);
      JobSpec apart = chain(2, 2, 2, 2, 5);
      add_experts(apart, 1, 2);
      add_experts(apart, 3, 2);
      apart.policies = {{.zero = 3, .bucket_bytes = has_bucket_each ? 1U : 0U}};
      add(apart);
    }
  }

  void both_ways() {
    for (const std::uint32_t pp : {2U, 4U}) {
      for (const std::uint32_t zero : {0U, 3U}) {
        for (const bool has_overlap : {false, true}) {
          for (const Split split : {Split::none, Split::all}) {
            JobSpec spec = chain(pp, zero == 3 ? 2 : 1, pp == 2 ? 4 : 2, pp, 3);
            spec.is_bidirectional = true;
            spec.policies = {{.zero = zero}};
            spec.order = has_overlap ? Order::backward_first : Order::none;
            spec.has_overlap = has_overlap;
            spec.split_backward = split;
            add(spec);
          }
        }
      }
    }
    for (const std::uint32_t zero : {0U, 2U, 3U}) {  // with experts
      for (const std::uint32_t dp : {2U, 4U}) {
        JobSpec spec = chain(2, dp, 2, 2, 3);
        add_experts(spec, 1, 2);
        spec.is_bidirectional = true;
        spec.policies = {{.zero = zero}};
        add(spec);
      }
    }
  }

  void folds() {
    for (const std::uint32_t pp : {2U, 3U}) {
      for (const bool is_folded : {false, true}) {
        for (const Split split : {Split::none, Split::all, Split::even}) {
          JobSpec spec = chain(pp, 1, 3, 2 * pp, 2 * pp - 1);
          spec.is_folded = is_folded;
          spec.split_backward = split;
          spec.order = split == Split::all ? Order::forward_first : Order::backward_first;
          spec.has_overlap = split == Split::even;
          spec.is_split_by_directive = split == Split::even;
          add(spec);
        }
      }
    }
  }

  void parameters() {
    for (const std::uint32_t pp : {1U, 2U, 3U}) {
      for (const std::uint32_t zero : {0U, 2U, 3U}) {
        JobSpec spec = chain(pp, 2, 2, pp, 3);
        spec.policies = {{.zero = zero}};
        spec.has_tied_head = true;
        add(spec);
        spec.has_tied_head = false;
        spec.has_frozen_embedding = true;
        spec.layers[1].frozen = true;
        add(spec);
        spec.layers[1] = {.reads = {1}, .stage = spec.layers[1].stage, .weights = 2, .tied = true};
        spec.has_frozen_embedding = false;
        spec.layers[2].weights = 0;
        add(spec);
      }
    }
    JobSpec frozen = chain(1, 2, 2, 1, 2);  // nothing is trained
    frozen.has_tied_head = frozen.has_frozen_embedding = frozen.is_analytical = true;
    frozen.layers[0].frozen = frozen.layers[1].frozen = true;
    add(frozen);
  }

  // Recomputation under every policy, split backwards, both ways, with experts, tied and frozen.
  void recomputed() {
    for (const JobSpec::Recompute recompute : {JobSpec::Recompute::full, JobSpec::Recompute::odd}) {
      for (const std::uint32_t pp : {1U, 2U}) {
        for (const std::uint32_t zero : {0U, 2U, 3U}) {
          JobSpec spec = chain(pp, 2, 3, 2 * pp, 4);
          spec.recompute = recompute;
          spec.policies = {{.zero = zero, .bucket_bytes = pp == 1 ? 300U : 0U}};
          spec.has_tied_head = zero == 2;
          spec.split_backward = zero == 0 ? Split::none : zero == 2 ? Split::even : Split::all;
          spec.order = pp == 1 ? Order::none : Order::backward_first;
          add(spec);
          spec.layers[0].frozen = spec.has_frozen_embedding = true;
          spec.has_tied_head = false;
          spec.layers[2].reads = {1, 2};
          spec.order = Order::by_pass;
          add(spec);
        }
      }
      JobSpec both = chain(2, 2, 4, 2, 3);
      add_experts(both, 1, 2);
      both.is_bidirectional = both.has_overlap = true;
      both.order = Order::backward_first;
      both.policies = {{.zero = 3}};
      both.recompute = recompute;
      add(both);
    }
  }

  void filters() {
    for (const std::uint32_t pp : {1U, 2U, 3U}) {
      for (const Order order : {Order::by_microbatch, Order::by_pass, Order::mixed}) {
        for (const bool is_analytical : {false, true}) {
          JobSpec spec = chain(pp, 1, 3, pp, 3);
          spec.order = order;
          spec.is_analytical = is_analytical;
          spec.split_backward = is_analytical ? Split::all : Split::none;
          add(spec);
        }
      }
    }
  }

  // Two towers, a skip, a second input, and what leads nowhere.
  void branches() {
    for (const std::uint32_t pp : {1U, 2U, 3U}) {
      for (const std::uint32_t zero : {0U, 3U}) {
        JobSpec spec = chain(pp, zero == 3 ? 2 : 1, 2, pp, 4);
        spec.policies = {{.zero = zero}};
        spec.layers[1].reads = {0};
        spec.layers[2].reads = {1, 2};
        add(spec);
        spec.layers[1].reads = {};
        spec.layers[3].reads = {3, 1};
        add(spec);
        spec.layers[3].reads = {3};
        spec.layers[2].reads = {1};
        spec.layers[1].dead = true;
        add(spec);
      }
    }
    JobSpec spec = chain(2, 1, 2, 2, 4);  // towers on ranks of their own
    spec.layers[1] = {.reads = {0}, .stage = 1};
    spec.layers[2] = {.reads = {1}, .stage = 0};
    spec.layers[3] = {.reads = {2, 3}, .stage = 1};
    add(spec);
  }

  std::vector<JobSpec> specs_;
};

CorpusJob planned(JobSpec spec) {
  CorpusJob made{to_string(spec), std::move(spec), {}, {}, {}};
  made.job = make_job(made.spec);
  Expected<Annotated> annotated = annotate(made.job.config, made.job.model, {made.job.proposal});
  PIPER_CHECK(annotated.has_value(),
              made.name + ": " + (annotated ? "" : to_string(annotated.error())));
  made.annotated = std::move(*annotated);
  Expected<Plans> plans = plan(made.job);
  PIPER_CHECK(plans.has_value(), made.name + ": " + (plans ? "" : to_string(plans.error())));
  made.plans = std::move(*plans);
  return made;
}

}  // namespace

const std::vector<CorpusJob>& plan_corpus() {
  static const std::vector<CorpusJob> jobs = [] {
    std::vector<CorpusJob> list;
    for (JobSpec& spec : Corpus().run()) {
      list.push_back(planned(std::move(spec)));
    }
    return list;
  }();
  return jobs;
}

}  // namespace piper::test
