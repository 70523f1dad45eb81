#include "tests/support/sharded_toy.h"

#include <algorithm>

#include "tests/support/toy_model.h"

namespace piper::test {
namespace {

Filter in_range(std::string tag, std::uint32_t first, std::uint32_t last) {
  return {{{std::move(tag), Condition::Kind::in_range, {first, last}}}, {}};
}
Filter equals(std::string tag, std::uint32_t value) {
  return {{{std::move(tag), Condition::Kind::equals, {value}}}, {}};
}

class Maker {
 public:
  explicit Maker(const ShardedShape& shape) : shape_(shape) {
    job_.config = toy_config(shape.pp, shape.dp, shape.microbatches);
    job_.model = toy_model({.layers = shape.layers, .tied = shape.tied});
    job_.proposal.from = {"toy", {"job.toml", 7, 1}};
    job_.proposal.claims = {{Claim::Kind::axis, "pp", job_.proposal.from}};
    if (shape.ep > 0) {
      add_experts();
    }
  }

  ShardedJob run() {
    place();
    replicate();
    if (shape_.split_backward) {
      say(SplitBackwardDirective{{}});
    }
    if (shape_.ep > 0) {
      say(ShardDirective{{{{"EP", Condition::Kind::present, {}}}, {}}, groups_of(shape_.ep), "ep"});
    }
    if (shape_.ordered) {
      for (std::uint32_t p = 0; p < shape_.pp; ++p) {
        say(OrderChainDirective{ranks(p), shape_.bidirectional ? both_ways(p) : one_way(p)});
      }
    }
    return std::move(job_);
  }

 private:
  template <typename What>
  void say(What what) {
    job_.proposal.directives.push_back({std::move(what), job_.proposal.from});
  }

  void add_experts() {
    ModelGraph& model = job_.model;
    const TagId tag = model.intern_tag("EP");
    for (const std::uint32_t layer : shape_.expert_layers) {
      Region& region = model.regions[layer + 1];
      region.tags.push_back({tag, layer});
      for (std::uint32_t e = 1; e < 4; ++e) {
        Parameter expert = model.parameter(region.parameters.front());
        expert.name += ".expert" + std::to_string(e);
        model.parameters.push_back(expert);
        region.parameters.push_back(
            ParameterId{static_cast<std::uint32_t>(model.parameters.size() - 1)});
      }
    }
  }

  Ranks ranks(std::uint32_t p) const {
    Ranks group;
    for (std::uint32_t d = 0; d < shape_.dp; ++d) {
      group.ranks.push_back(p * shape_.dp + d);
    }
    return group;
  }

  // Consecutive ranks, in groups of that many.
  Family groups_of(std::uint32_t size) const {
    Family family;
    for (std::uint32_t r = 0; r < shape_.pp * shape_.dp; r += size) {
      Ranks group;
      for (std::uint32_t i = 0; i < size; ++i) {
        group.ranks.push_back(r + i);
      }
      family.groups.push_back(std::move(group));
    }
    return family;
  }

  std::uint32_t half() const { return shape_.microbatches / 2; }

  void place() {
    const auto regions = static_cast<std::uint32_t>(job_.model.regions.size());
    for (std::uint32_t s = 0; s < shape_.pp; ++s) {
      say(TagDirective{
          in_range("REGION", s * regions / shape_.pp, (s + 1) * regions / shape_.pp - 1), "PP", s});
      if (!shape_.bidirectional) {
        say(PlaceDirective{equals("PP", s), ranks(s), "compute"});
        continue;
      }
      const auto there = [&](std::uint32_t first, std::uint32_t last, std::uint32_t p) {
        Filter filter = equals("PP", s);
        filter.conditions.push_back({"MB", Condition::Kind::in_range, {first, last}});
        say(PlaceDirective{filter, ranks(p), "compute"});
      };
      there(0, half() - 1, s);
      there(half(), shape_.microbatches - 1, shape_.pp - 1 - s);
    }
  }

  void replicate() {
    ReplicateDirective what;
    what.shard_optimizer = shape_.zero >= 1;
    what.shard_grads = shape_.zero >= 2;
    what.shard_params = shape_.zero >= 3;
    what.bucket_bytes = shape_.bucket_bytes;
    what.keep_gathered = shape_.keep_gathered;
    what.reduce = shape_.reduce;
    what.prefetch = shape_.prefetch;
    what.family = shape_.hybrid > 0 ? groups_of(shape_.hybrid) : Family{};
    say(std::move(what));
  }

  std::vector<Action> one_way(std::uint32_t s) const {
    std::vector<Action> actions;
    const std::uint32_t m = shape_.microbatches;
    const std::uint32_t warm = shape_.gpipe ? m : std::min(m, shape_.pp - s);
    for (std::uint32_t f = 0; f < warm; ++f) {
      actions.push_back({s, f, Pass::forward});
    }
    for (std::uint32_t b = 0; b < m; ++b) {
      const bool pair = warm + b < m;
      const std::uint32_t overlap = shape_.overlap && pair ? b + 1 : 0;
      actions.push_back({s, b, Pass::backward, overlap});
      if (pair) {
        actions.push_back({s, warm + b, Pass::forward, overlap});
      }
    }
    return actions;
  }

  std::vector<Action> both_ways(std::uint32_t p) const {
    std::vector<Action> actions;
    const std::uint32_t back = shape_.pp - 1 - p, m = shape_.microbatches;
    for (std::uint32_t f = 0; f < half(); ++f) {
      actions.push_back({p, f, Pass::forward});
    }
    for (std::uint32_t f = half(); f < m; ++f) {
      actions.push_back({back, f, Pass::forward});
    }
    for (std::uint32_t b = 0; b < m - half(); ++b) {
      const bool pair = b < half();
      const std::uint32_t overlap = shape_.overlap && pair ? b + 1 : 0;
      if (pair) {
        actions.push_back({p, b, Pass::backward, overlap});
      }
      actions.push_back({back, half() + b, Pass::backward, overlap});
    }
    return actions;
  }

  const ShardedShape& shape_;
  ShardedJob job_;
};

}  // namespace

std::string to_string(const ShardedShape& s) {
  const auto number = [](const char* name, std::uint64_t value) {
    return std::string(name) + ' ' + std::to_string(value) + ' ';
  };
  return number("pp", s.pp) + number("dp", s.dp) + number("M", s.microbatches) +
         number("zero", s.zero) + number("bucket_bytes", s.bucket_bytes) +
         number("prefetch", s.prefetch) + number("hybrid", s.hybrid) + number("ep", s.ep) +
         (s.keep_gathered == Span::step ? "keep_gathered step " : "") +
         (s.reduce == Span::step ? "reduce step " : "") + (s.tied ? "tied " : "") +
         (s.split_backward ? "split " : "") + (s.gpipe ? "gpipe " : "") +
         (s.bidirectional ? "bidirectional " : "") + (s.ordered ? "" : "unordered ") +
         (s.overlap ? "overlap" : "");
}

ShardedJob sharded_job(const ShardedShape& shape) {
  return Maker(shape).run();
}

Expected<Plans> plan(const ShardedJob& job) {
  return piper::plan(job.config, job.model, {job.proposal});
}

std::vector<ShardedShape> small_shapes() {
  return {
      {.pp = 1, .dp = 2, .microbatches = 2, .zero = 1, .bucket_bytes = 0},
      {.pp = 2, .dp = 2, .microbatches = 2, .zero = 2, .bucket_bytes = 700},
      {.pp = 2, .dp = 2, .microbatches = 2, .zero = 3, .bucket_bytes = 700},
      {.pp = 1, .dp = 2, .microbatches = 2, .zero = 3, .bucket_bytes = 0, .split_backward = true},
      {.pp = 2,
       .dp = 2,
       .microbatches = 2,
       .zero = 3,
       .bucket_bytes = 0,
       .keep_gathered = Span::step,
       .reduce = Span::step,
       .tied = true},
      {.pp = 1, .dp = 4, .microbatches = 2, .zero = 3, .bucket_bytes = 0, .hybrid = 2},
      {.pp = 1,
       .dp = 4,
       .microbatches = 1,
       .zero = 2,
       .bucket_bytes = 0,
       .ep = 2,
       .expert_layers = {1}},
      {.pp = 2, .dp = 1, .microbatches = 4, .zero = 0, .bucket_bytes = 0, .bidirectional = true},
      {.pp = 2,
       .dp = 2,
       .microbatches = 2,
       .zero = 3,
       .bucket_bytes = 0,
       .bidirectional = true,
       .overlap = true},
  };
}

}  // namespace piper::test
