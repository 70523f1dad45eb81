// plan.form, second part: the tables of chunks and buckets say the same as the model.
#include <algorithm>
#include <string>

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
        facts_(find_facts(report.plan, report.model)) {}

  void run() {
    partition();
    if (!report_.ok()) {
      return;
    }
    used_outside_.assign(model_.values.size(), false);
    for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
      for (const ValueId input : model_.regions[r].inputs) {
        const ChunkId producer = facts_.producer[index(input)];
        if (valid(producer) && index(producer) != chunk_of_[r]) {
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

  // Every region is in one chunk, every parameter in one bucket.
  void partition() {
    chunk_of_.assign(model_.regions.size(), kNobody);
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      for (const RegionId region : plan_.chunks[c].regions) {
        claim(chunk_of_, index(region), c, "region", "chunk");
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
    Affine saved;
    bool has_loss = false, has_backward = false;
    for (const RegionId region_id : chunk.regions) {
      const Region& region = model_.region(region_id);
      for (const ValueId input : region.inputs) {
        if (facts_.producer[index(input)] != static_cast<ChunkId>(id)) {
          inputs.push_back(input);
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
      saved = saved + region.saved_bytes;
    }
    same(name, chunk.inputs, inputs, "inputs");
    same(name, chunk.outputs, outputs, "outputs");
    same(name, chunk.buckets, buckets, "buckets");
    if (chunk.has_loss != has_loss) {
      bad(name + (has_loss ? " computes the loss but does not say so"
                           : " says it computes the loss but does not"));
    }
    if (chunk.has_backward != has_backward) {
      bad(name + (has_backward ? " has something to differentiate but no backward"
                               : " has a backward but nothing to differentiate"));
    }
    if (chunk.saved_bytes != saved) {
      bad(name + ": its saved bytes are not the sum of its regions'");
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
    if (elements != bucket.elements) {
      bad(name + ": expected " + std::to_string(elements) + " elements, got " +
          std::to_string(bucket.elements));
    }
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      const Chunk& chunk = plan_.chunks[c];
      const bool uses = std::find(chunk.buckets.begin(), chunk.buckets.end(),
                                  static_cast<BucketId>(id)) != chunk.buckets.end();
      if (uses && !std::binary_search(bucket.homes.begin(), bucket.homes.end(), chunk.program)) {
        bad(name + " is used by chunk " + std::to_string(c) + " of program " +
            std::to_string(chunk.program) + ", which is not among its homes");
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
  std::vector<std::uint32_t> chunk_of_;   // by RegionId
  std::vector<std::uint32_t> bucket_of_;  // by ParameterId
  std::vector<bool> used_outside_;        // by ValueId
};

}  // namespace

void check_tables(Report& report) {
  Tables(report).run();
}

}  // namespace piper
