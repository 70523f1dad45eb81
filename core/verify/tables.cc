// plan.form, second part: the tables of chunks and buckets say the same as the model.
#include <algorithm>
#include <string>

#include "core/plan/chunk_memory.h"
#include "core/verify/rules.h"

namespace piper {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;

class Tables {
 public:
  explicit Tables(Report& report)
      : report_(report),
        plan_(report.plan),
        model_(report.model),
        facts_(find_facts(report.plan.chunks, report.model)) {}

  void run() {
    partition();
    if (!report_.ok()) {
      return;
    }
    find_first_uses();
    used_outside_.assign(model_.values.size(), false);
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      for (const ValueId input : model_.regions[r].inputs) {
        if (is_made_outside(input, chunk_of_[r])) {
          used_outside_[index(input)] = true;
        }
      }
    }
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      chunk(c);
    }
    for (std::uint32_t b = 0; b < plan_.buckets.size(); ++b) {
      bucket(b);
    }
    program_buckets();
  }

 private:
  void bad(std::string message) { report_.add("plan.form", std::move(message)); }

  bool is_made_outside(ValueId value, std::uint32_t chunk) const {
    const std::vector<ChunkId>& makers = facts_.makers[index(value)];
    return !makers.empty() && index(makers.front()) != chunk;
  }

  void find_first_uses() {
    first_uses_.resize(model_.parameters.size());
    std::vector<bool> is_known(model_.parameters.size(), false);
    for (const Region& region : model_.regions) {
      for (std::size_t i = 0; i < region.parameters.size(); ++i) {
        const std::uint32_t parameter = index(region.parameters[i]);
        if (!is_known[parameter]) {
          first_uses_[parameter] = {i, region.parameters.size()};
        }
        is_known[parameter] = true;
      }
    }
  }

  // Every region is in one chunk, or in several with the same regions of which each runs other
  // micro-batches on a program of its own; every parameter is in one bucket.
  void partition() {
    chunk_of_.assign(model_.regions.size(), kNobody);
    first_chunk_.resize(plan_.chunks.size());
    std::vector<std::vector<std::uint32_t>> sharers(plan_.chunks.size());  // by first chunk
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      const std::vector<RegionId>& regions = plan_.chunks[c].regions;
      const std::uint32_t first = regions.empty() ? kNobody : chunk_of_[index(regions[0])];
      const bool shares = first != kNobody && plan_.chunks[first].regions == regions;
      first_chunk_[c] = shares ? first : c;
      sharers[first_chunk_[c]].push_back(c);
      for (const RegionId region : regions) {
        if (!shares) {
          claim(chunk_of_, index(region), c, "region", "chunk");
        }
      }
    }
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      if (!sharers[c].empty()) {
        microbatches(c, sharers[c]);
      }
    }
    bucket_of_.assign(model_.parameters.size(), kNobody);
    for (std::uint32_t b = 0; b < plan_.buckets.size(); ++b) {
      for (const ParameterId parameter : plan_.buckets[b].parameters) {
        claim(bucket_of_, index(parameter), b, "parameter", "bucket");
      }
    }
    all_claimed(chunk_of_, "region", "chunk");
    all_claimed(bucket_of_, "parameter", "bucket");
  }

  void microbatches(std::uint32_t first, const std::vector<std::uint32_t>& sharers) {
    std::vector<std::uint32_t> times(plan_.microbatches, 0);
    std::vector<bool> is_taken(plan_.programs.size(), false);
    for (const std::uint32_t c : sharers) {
      const Chunk& chunk = plan_.chunks[c];
      for (std::uint32_t m = 0; m < plan_.microbatches; ++m) {
        times[m] += runs_microbatch(chunk, m) ? 1 : 0;
      }
      if (is_taken[chunk.program]) {
        bad("chunk " + std::to_string(c) + " and another one on program " +
            std::to_string(chunk.program) + " have the same regions");
      }
      is_taken[chunk.program] = true;
      if (chunk.experts != plan_.chunks[first].experts) {
        bad("chunk " + std::to_string(c) + " and chunk " + std::to_string(first) +
            " have the same regions, but only one is of experts");
      }
    }
    for (std::uint32_t m = 0; m < plan_.microbatches; ++m) {
      if (times[m] != 1) {
        bad("micro-batch " + std::to_string(m) + " of chunk " + std::to_string(first) +
            ": expected one place that runs it, got " + std::to_string(times[m]));
        return;
      }
    }
  }

  void claim(std::vector<std::uint32_t>& owner, std::uint32_t item, std::uint32_t by,
             const char* what, const char* who) {
    if (owner[item] != kNobody) {
      bad(std::string(what) + " " + std::to_string(item) + " is in " + who + " " +
          std::to_string(owner[item]) + " and in " + who + " " + std::to_string(by));
    }
    owner[item] = by;
  }

  void all_claimed(const std::vector<std::uint32_t>& owner, const char* what, const char* who) {
    const auto missing = std::find(owner.begin(), owner.end(), kNobody);
    if (missing != owner.end()) {
      bad(std::string(what) + " " + std::to_string(missing - owner.begin()) + " is in no " + who);
    }
  }

  template <typename Id>
  void same(const std::string& name, std::vector<Id> got, std::vector<Id> expected,
            const char* what) {
    const bool has_twice = [&] {
      std::sort(got.begin(), got.end());
      return std::adjacent_find(got.begin(), got.end()) != got.end();
    }();
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    if (has_twice || got != expected) {
      bad(name + ": expected " + what + " " + text(expected) + ", got " + text(got));
    }
  }

  template <typename Id>
  static std::string text(const std::vector<Id>& ids) {
    std::string list = "(";
    for (const Id id : ids) {
      list += (list.size() == 1 ? "" : ", ") + std::to_string(static_cast<std::uint32_t>(id));
    }
    return list + ")";
  }

  void chunk(std::uint32_t id) {
    const Chunk& chunk = plan_.chunks[id];
    const std::string name = "chunk " + std::to_string(id);
    std::vector<ValueId> inputs, outputs;
    std::vector<BucketId> buckets;
    bool has_loss = false, has_backward = false;
    for (const RegionId region_id : chunk.regions) {
      const Region& region = model_.region(region_id);
      for (const ValueId input : region.inputs) {
        if (facts_.makers[index(input)].empty() || is_made_outside(input, first_chunk_[id])) {
          inputs.push_back(input);
        }
        if (chunk.experts && facts_.makers[index(input)].empty()) {
          bad(name + ": experts read an input of the model");
        }
      }
      for (const ValueId output : region.outputs) {
        if (used_outside_[index(output)]) {
          outputs.push_back(output);
        }
        has_loss = has_loss || output == model_.loss;
        has_backward = has_backward || facts_.wants_gradient[index(output)];
      }
      for (const ParameterId parameter : region.parameters) {
        buckets.push_back(static_cast<BucketId>(bucket_of_[index(parameter)]));
      }
    }
    same(name, chunk.inputs, inputs, "inputs");
    same(name, chunk.outputs, outputs, "outputs");
    same(name, chunk.buckets, buckets, "buckets");
    if (chunk.has_loss != has_loss) {
      bad(name + (has_loss ? " computes the loss but does not say so"
                           : " says it computes the loss but does not"));
    }
    if (chunk.recompute && !has_backward) {
      bad(name + " is recomputed but has nothing to differentiate");
    }
    if (chunk.has_backward != has_backward) {
      bad(name + (has_backward ? " has something to differentiate but no backward"
                               : " has a backward but nothing to differentiate"));
    }
    if (chunk.saved_bytes != saved_bytes(model_, chunk)) {
      bad(name + ": its saved bytes are not what its regions keep");
    }
    for (std::size_t i = 1; i < chunk.regions.size(); ++i) {
      if (chunk.regions[i - 1] >= chunk.regions[i]) {
        bad(name + ": its regions are not in execution order");
        break;
      }
    }
  }

  void bucket(std::uint32_t id) {
    const Bucket& bucket = plan_.buckets[id];
    const std::string name = "bucket " + std::to_string(id);
    std::int64_t elements = 0;
    for (const ParameterId parameter_id : bucket.parameters) {
      const Parameter& parameter = model_.parameter(parameter_id);
      elements += parameter.elements();
      if (parameter.dtype != bucket.dtype || parameter.frozen != bucket.frozen) {
        bad(name + ": parameter '" + parameter.name +
            "' differs from it in dtype or in whether it is frozen");
      }
    }
    if (elements != bucket.elements * bucket.expert_parts) {
      bad(name + ": expected " + std::to_string(elements / bucket.expert_parts) +
          " elements, got " + std::to_string(bucket.elements));
    }
    expert_blocks(name, bucket);
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      const Chunk& chunk = plan_.chunks[c];
      const bool uses = std::find(chunk.buckets.begin(), chunk.buckets.end(),
                                  static_cast<BucketId>(id)) != chunk.buckets.end();
      if (uses && chunk.expert_parts != bucket.expert_parts) {
        bad(name + " has " + std::to_string(bucket.expert_parts) + " parts of experts, but chunk " +
            std::to_string(c) + " has " + std::to_string(chunk.expert_parts));
      }
      if (uses && !std::binary_search(bucket.homes.begin(), bucket.homes.end(), chunk.program)) {
        bad(name + " is used by chunk " + std::to_string(c) + " of program " +
            std::to_string(chunk.program) + ", which is not among its homes");
      }
    }
  }

  // Each rank of an expert group has an equal block: block i of each region's parameters.
  void expert_blocks(const std::string& name, const Bucket& bucket) {
    const std::size_t count = bucket.parameters.size();
    if (count % bucket.expert_parts != 0) {
      bad(name + ": its " + std::to_string(count) + " parameters do not make " +
          std::to_string(bucket.expert_parts) + " blocks");
      return;
    }
    const std::size_t block = count / bucket.expert_parts;
    for (std::size_t i = 0; i < count && bucket.expert_parts > 1; ++i) {
      const ParameterId id = bucket.parameters[i];
      const FirstUse& use = first_uses_[index(id)];
      if (use.position * bucket.expert_parts / use.count != i / block) {
        bad(name + ": parameter '" + model_.parameter(id).name + "' is in block " +
            std::to_string(i / block) + " of its experts, but in block " +
            std::to_string(use.position * bucket.expert_parts / use.count) + " of its region's");
        return;
      }
      if (model_.parameter(id).shape != model_.parameter(bucket.parameters[i % block]).shape) {
        bad(name + ": its blocks of experts differ in shape");
        return;
      }
    }
  }

  void program_buckets() {
    std::vector<std::vector<BucketId>> expected(plan_.programs.size());
    for (std::uint32_t b = 0; b < plan_.buckets.size(); ++b) {
      for (const std::uint32_t home : plan_.buckets[b].homes) {
        expected[home].push_back(static_cast<BucketId>(b));
      }
    }
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      same("program " + std::to_string(p), plan_.programs[p].buckets, expected[p], "buckets");
    }
  }

  Report& report_;
  const Plan& plan_;
  const ModelGraph& model_;
  const ModelFacts facts_;
  std::vector<std::uint32_t> chunk_of_;     // by RegionId: its first chunk
  std::vector<std::uint32_t> first_chunk_;  // by ChunkId: the first with the same regions
  std::vector<std::uint32_t> bucket_of_;    // by ParameterId
  std::vector<bool> used_outside_;          // by ValueId
  struct FirstUse {
    std::size_t position = 0, count = 1;  // among its first region's parameters
  };
  std::vector<FirstUse> first_uses_;  // by ParameterId
};

}  // namespace

void check_tables(Report& report) {
  Tables(report).run();
}

}  // namespace piper
