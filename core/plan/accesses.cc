#include "core/plan/accesses.h"

#include <algorithm>
#include <array>

namespace piper {
namespace {

using Kind = BufferKind;

struct Rules {
  std::size_t first = 0, count = 0;
};

constexpr std::array<Rules, kOps> kRules = [] {
  std::array<Rules, kOps> rules{};
  for (std::size_t i = 0; i < std::size(kAccesses); ++i) {
    Rules& own = rules[static_cast<std::size_t>(kAccesses[i].op)];
    own.first = own.count == 0 ? i : own.first;
    ++own.count;
  }
  return rules;
}();
static_assert(
    [] {
      std::size_t seen = 0;
      for (const Rules& own : kRules) {
        for (std::size_t i = 0; i < own.count; ++i) {
          seen += kAccesses[own.first + i].op == kAccesses[own.first].op ? 1 : 0;
        }
      }
      return seen == std::size(kAccesses);
    }(),
    "the rules of an operation stand together");

std::string_view words(What what) {
  switch (what) {
    case What::inputs:
      return "`activation` or `input` of the chunk's inputs (experts: `routed`)";
    case What::outputs:
      return "`activation` of the chunk's outputs, the loss apart (experts: `routed`)";
    case What::outputs_kept:
      return "`activation` of the chunk's outputs, where it was not recomputed";
    case What::saved:
      return "`saved`";
    case What::saved_for_backward:
      return "`saved`, where a backward follows and no `recompute` makes it";
    case What::parameters:
      return "`parameter` of the chunk's buckets (ZeRO 3: `gathered` of the chain)";
    case What::parameter_gradients:
      return "`parameter_gradient` of the chunk's trained buckets (ZeRO: `full_gradient` of the "
             "chain)";
    case What::input_gradients:
      return "`gradient` of the chunk's inputs that want one (experts: `routed_gradient`)";
    case What::output_gradients:
      return "`gradient` of the chunk's outputs by each of their consumers (experts: "
             "`routed_gradient`)";
    case What::message:
      return "`activation` or `gradient` of its value";
    case What::route_from:
      return "`activation`, `routed`, `gradient` or `routed_gradient` on one side of the experts";
    case What::route_to:
      return "the same on the other side";
    case What::parameter:
      return "`parameter`";
    case What::gathered:
      return "`parameter` (ZeRO 3: `gathered` of its chain)";
    case What::parameter_gradient:
      return "`parameter_gradient`";
    case What::full_gradient:
      return "`full_gradient` of its chain";
    case What::optimizer:
      return "`optimizer`";
    case What::batch:
      return "`input` of every value and micro-batch that the program uses";
    case What::labels:
      return "`input` of the labels, all micro-batches";
    case What::gradients:
      return "`parameter_gradient` of every trained bucket";
    case What::loss_sum:
      return "`loss_sum`, where the loss is";
    case What::token_count:
      return "`token_count`, where the loss is";
    case What::grad_norm:
      return "`grad_norm`";
  }
  return "";
}

// What a task only adds to, and what it finds in place, read like a column of their own.
std::string column(Op op, std::initializer_list<Access> wanted) {
  std::string text;
  for (const AccessRule& rule : accesses_of(op)) {
    if (std::find(wanted.begin(), wanted.end(), rule.access) != wanted.end()) {
      text += text.empty() ? "" : "; ";
      text += rule.access == Access::keeps  ? "kept: "
              : rule.access == Access::adds ? "adds to "
                                            : "";
      text += words(rule.what);
    }
  }
  return text;
}

// A graph has no chains yet before its gathers and reductions are in it.
std::uint32_t chain_at(std::span<const std::uint32_t> chains, std::size_t j) {
  return j < chains.size() ? chains[j] : 0;
}

}  // namespace

std::span<const AccessRule> accesses_of(Op op) {
  const Rules& own = kRules[static_cast<std::size_t>(op)];
  return {kAccesses + own.first, own.count};
}

bool touches(Op op, What what) {
  const std::span<const AccessRule> rules = accesses_of(op);
  return std::any_of(rules.begin(), rules.end(),
                     [&](const AccessRule& rule) { return rule.what == what; });
}

std::string access_table() {
  std::string text = "| operation | reads | writes | changes |\n| --- | --- | --- | --- |\n";
  for (const OpTraits& of : kOpTraits) {
    if (!accesses_of(of.op).empty()) {
      text += "| `" + std::string(of.name) + "` | " +
              column(of.op, {Access::reads, Access::keeps}) + " | " +
              column(of.op, {Access::writes}) + " | " +
              column(of.op, {Access::adds, Access::changes, Access::renews}) + " |\n";
    }
  }
  return text;
}

class Accesses::Found {
 public:
  Found(std::vector<Entry>& out, Access access) : out_(out), access_(access) {}

  void operator()(Content content) { out_.push_back({access_, content}); }
  void of_use(Kind kind, ValueId value, std::uint32_t microbatch, ChunkId chunk) {
    (*this)({kind, value, microbatch, chunk, none<BucketId>(), 0});
  }
  void of_bucket(Kind kind, BucketId bucket, std::uint32_t chain = 0) {
    (*this)({kind, none<ValueId>(), 0, none<ChunkId>(), bucket, chain});
  }
  void single(Kind kind) { of_bucket(kind, none<BucketId>()); }

 private:
  std::vector<Entry>& out_;
  Access access_;
};

Accesses::Accesses(Scope scope)
    : scope_(std::move(scope)), facts_(find_facts(scope_.chunks, scope_.model)) {
  consumers_.resize(scope_.model.values.size());
  for (std::uint32_t c = 0; c < scope_.chunks.size(); ++c) {
    for (const ValueId input : scope_.chunks[c].inputs) {
      consumers_[index(input)].push_back(static_cast<ChunkId>(c));
    }
  }
}

void Accesses::find(const Accessor& task, std::vector<Entry>& out) const {
  for (const AccessRule& rule : accesses_of(task.op)) {
    Found found(out, rule.access);
    add(rule.what, task, found);
  }
}

void Accesses::add(What what, const Accessor& task, Found& out) const {
  const std::uint32_t m = task.microbatch;
  switch (what) {
    case What::inputs:
      // Experts read what others made as it was routed to them, and what experts made as those
      // left it.
      for (const ValueId input : chunk(task.chunk).inputs) {
        chunk(task.chunk).experts
            ? out.of_use(Kind::routed, input, m,
                         made_by_experts(input) ? none<ChunkId>() : task.chunk)
            : out(value(input, m));
      }
      return;
    case What::outputs_kept:
      if (chunk(task.chunk).recompute) {
        return;
      }
      [[fallthrough]];
    case What::outputs:
      for (const ValueId output : chunk(task.chunk).outputs) {
        if (output != scope_.model.loss) {
          chunk(task.chunk).experts ? out.of_use(Kind::routed, output, m, none<ChunkId>())
                                    : out(value(output, m));
        }
      }
      return;
    case What::saved_for_backward:
      if (!scope_.trains || !chunk(task.chunk).has_backward || chunk(task.chunk).recompute) {
        return;
      }
      [[fallthrough]];
    case What::saved:
      return out.of_use(Kind::saved, none<ValueId>(), m, task.chunk);
    case What::parameters:
      return add_parameters(task, out);
    case What::parameter_gradients:
      return add_parameter_gradients(task, out);
    case What::input_gradients:
      return add_input_gradients(task, out);
    case What::output_gradients:
      return add_output_gradients(task, out);
    case What::message:
      valid(task.chunk) ? out.of_use(Kind::gradient, task.value, m, task.chunk)
                        : out(value(task.value, m));
      return;
    case What::route_from:
      return add_route(task, true, out);
    case What::route_to:
      return add_route(task, false, out);
    case What::parameter:
      return out.of_bucket(Kind::parameter, task.bucket);
    case What::gathered:
      return bucket(task.bucket).zero == 3 ? out.of_bucket(Kind::gathered, task.bucket, task.chain)
                                           : out.of_bucket(Kind::parameter, task.bucket);
    case What::parameter_gradient:
      return out.of_bucket(Kind::parameter_gradient, task.bucket);
    case What::full_gradient:
      return out.of_bucket(Kind::full_gradient, task.bucket, task.chain);
    case What::optimizer:
      return out.of_bucket(Kind::optimizer, task.bucket);
    case What::batch:
      return add_batch(task, out);
    case What::labels:
      for (const Chunk& chunk : scope_.chunks) {
        const bool counts = chunk.has_loss && chunk.program == task.program;
        for (std::uint32_t i = 0; counts && i < scope_.microbatches; ++i) {
          if (runs_microbatch(chunk, i)) {
            out(value(scope_.model.labels, i));
          }
        }
      }
      return;
    case What::gradients:
      for (std::uint32_t b = 0; b < scope_.buckets.size(); ++b) {
        const std::vector<std::uint32_t>& homes = scope_.buckets[b].homes;
        if (!scope_.buckets[b].frozen &&
            std::binary_search(homes.begin(), homes.end(), task.program)) {
          out.of_bucket(Kind::parameter_gradient, BucketId{b});
        }
      }
      return;
    case What::loss_sum:
      return has_loss(task) ? out.single(Kind::loss_sum) : void();
    case What::token_count:
      return has_loss(task) ? out.single(Kind::token_count) : void();
    case What::grad_norm:
      return out.single(Kind::grad_norm);
  }
}

void Accesses::add_parameters(const Accessor& task, Found& out) const {
  const std::vector<BucketId>& buckets = chunk(task.chunk).buckets;
  for (std::size_t j = 0; j < buckets.size(); ++j) {
    bucket(buckets[j]).zero == 3
        ? out.of_bucket(Kind::gathered, buckets[j], chain_at(task.parameter_chains, j))
        : out.of_bucket(Kind::parameter, buckets[j]);
  }
}

void Accesses::add_parameter_gradients(const Accessor& task, Found& out) const {
  const std::vector<BucketId>& buckets = chunk(task.chunk).buckets;
  for (std::size_t j = 0; j < buckets.size(); ++j) {
    if (!bucket(buckets[j]).frozen) {
      bucket(buckets[j]).zero > 0
          ? out.of_bucket(Kind::full_gradient, buckets[j], chain_at(task.gradient_chains, j))
          : out.of_bucket(Kind::parameter_gradient, buckets[j]);
    }
  }
}

void Accesses::add_input_gradients(const Accessor& task, Found& out) const {
  const Chunk& own = chunk(task.chunk);
  for (const ValueId input : own.inputs) {
    if (computes_gradient(input, task.chunk)) {
      const bool routed = own.experts && !made_by_experts(input);
      out.of_use(routed ? Kind::routed_gradient : Kind::gradient, input, task.microbatch,
                 task.chunk);
    }
  }
}

void Accesses::add_output_gradients(const Accessor& task, Found& out) const {
  const Chunk& own = chunk(task.chunk);
  for (const ValueId output : own.outputs) {
    for (const ChunkId consumer : consumers_[index(output)]) {
      if (computes_gradient(output, consumer) &&
          runs_microbatch(chunk(consumer), task.microbatch)) {
        const bool routed = own.experts && !chunk(consumer).experts;
        out.of_use(routed ? Kind::routed_gradient : Kind::gradient, output, task.microbatch,
                   consumer);
      }
    }
  }
}

// Going in, what others made; coming out, what others use. A backward goes the other way with the
// gradients of the same.
void Accesses::add_route(const Accessor& task, bool from, Found& out) const {
  const Chunk& own = chunk(task.chunk);
  const std::uint32_t m = task.microbatch;
  const bool outside = from == task.into_experts;  // the side that is looked at
  if (task.into_experts != task.backward) {
    for (const ValueId input : own.inputs) {
      if (made_by_experts(input)) {
        continue;
      }
      if (!task.backward) {
        outside ? out(value(input, m)) : out.of_use(Kind::routed, input, m, task.chunk);
      } else if (computes_gradient(input, task.chunk)) {
        out.of_use(outside ? Kind::gradient : Kind::routed_gradient, input, m, task.chunk);
      }
    }
    return;
  }
  for (const ValueId output : own.outputs) {
    bool leaves = false;
    for (const ChunkId consumer : consumers_[index(output)]) {
      const Chunk& other = chunk(consumer);
      leaves = leaves || !other.experts;
      if (task.backward && !other.experts && runs_microbatch(other, m) &&
          computes_gradient(output, consumer)) {
        out.of_use(outside ? Kind::gradient : Kind::routed_gradient, output, m, consumer);
      }
    }
    if (!task.backward && leaves) {
      outside ? out(value(output, m)) : out.of_use(Kind::routed, output, m, none<ChunkId>());
    }
  }
}

void Accesses::add_batch(const Accessor& task, Found& out) const {
  for (std::uint32_t v = 0; v < scope_.model.values.size(); ++v) {
    if (!scope_.model.values[v].is_input()) {
      continue;
    }
    std::vector<bool> used(scope_.microbatches, false);
    for (const Chunk& chunk : scope_.chunks) {
      const auto& inputs = chunk.inputs;
      const bool reads = chunk.program == task.program &&
                         ((chunk.has_loss && ValueId{v} == scope_.model.labels) ||
                          std::find(inputs.begin(), inputs.end(), ValueId{v}) != inputs.end());
      for (std::uint32_t m = 0; reads && m < scope_.microbatches; ++m) {
        used[m] = used[m] || runs_microbatch(chunk, m);
      }
    }
    for (std::uint32_t m = 0; m < scope_.microbatches; ++m) {
      if (used[m]) {
        out(value(ValueId{v}, m));
      }
    }
  }
}

bool Accesses::made_by_experts(ValueId value) const {
  const std::vector<ChunkId>& makers = facts_.makers[index(value)];
  return !makers.empty() && chunk(makers.front()).experts;
}

bool Accesses::has_loss(const Accessor& task) const {
  if (valid(task.chunk)) {
    return chunk(task.chunk).has_loss;
  }
  return std::any_of(scope_.chunks.begin(), scope_.chunks.end(), [&](const Chunk& chunk) {
    return chunk.has_loss && chunk.program == task.program;
  });
}

bool Accesses::computes_gradient(ValueId value, ChunkId id) const {
  return scope_.trains && !facts_.makers[index(value)].empty() &&
         facts_.wants_gradient[index(value)] && chunk(id).has_backward;
}

Content Accesses::value(ValueId value, std::uint32_t microbatch) const {
  const bool is_input = scope_.model.value(value).is_input();
  return {is_input ? Kind::input : Kind::activation,
          value,
          microbatch,
          none<ChunkId>(),
          none<BucketId>(),
          0};
}

}  // namespace piper
