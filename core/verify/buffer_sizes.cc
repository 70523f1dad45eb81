// plan.form: every buffer is as large, and of the kind, that the model and the tables say.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/verify/rules.h"

namespace piper {
namespace {

using Kind = Buffer::Kind;

class BufferSizes {
 public:
  BufferSizes(Report& report, const ModelFacts& facts, std::uint32_t program)
      : report_(report),
        plan_(report.plan),
        model_(report.model),
        facts_(facts),
        id_(program),
        program_(report.plan.programs[program]) {}

  void run() {
    for (const Task& task : program_.tasks) {
      if (task.op == Op::backward_input) {
        split_.emplace(task.chunk, task.microbatch);
      }
    }
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.bytes != expected_size(buffer)) {
        bad("program " + std::to_string(id_) + ": " + report_.buffer(buffer) +
            " has another size than the model says");
      }
      if (buffer.kind <= Kind::activation && valid(buffer.value) &&
          model_.value(buffer.value).is_input() != (buffer.kind == Kind::input)) {
        bad("program " + std::to_string(id_) + ": " + report_.buffer(buffer) +
            " is of another kind than its value");
      }
    }
  }

 private:
  void bad(std::string message) { report_.add("plan.form", std::move(message)); }

  static Affine times(Affine bytes, std::uint32_t n) {
    return {bytes.per_row * n, bytes.fixed * n};
  }

  // All rows of an expert group may arrive at one of its members.
  Affine expected_size(const Buffer& buffer) const {
    const bool has_value = valid(buffer.value);
    const bool has_bucket = valid(buffer.bucket);
    const Bucket* const bucket = has_bucket ? &plan_.buckets[index(buffer.bucket)] : nullptr;
    switch (buffer.kind) {
      case Kind::input:
      case Kind::activation:
      case Kind::gradient:
        return has_value ? model_.value(buffer.value).bytes() : buffer.bytes;
      case Kind::routed:
      case Kind::routed_gradient:
        return has_value ? times(model_.value(buffer.value).bytes(), parts_of(buffer))
                         : buffer.bytes;
      case Kind::saved: {
        if (!valid(buffer.chunk)) {
          return buffer.bytes;
        }
        const Chunk& chunk = plan_.chunks[index(buffer.chunk)];
        const Affine pending = split_.contains({buffer.chunk, buffer.microbatch})
                                   ? bytes_for_weights(chunk)
                                   : Affine{};
        return times({std::max(chunk.saved_bytes.per_row, pending.per_row),
                      std::max(chunk.saved_bytes.fixed, pending.fixed)},
                     chunk.expert_parts);
      }
      case Kind::parameter:
        return has_bucket ? Affine{0, bucket->kept_bytes()} : buffer.bytes;
      case Kind::parameter_gradient:
        return has_bucket ? Affine{0, bucket->shard_gradient_bytes()} : buffer.bytes;
      case Kind::gathered:
        return has_bucket ? Affine{0, bucket->bytes()} : buffer.bytes;
      case Kind::full_gradient:
        return has_bucket ? Affine{0, bucket->gradient_bytes()} : buffer.bytes;
      default:
        return buffer.bytes;
    }
  }

  // What backward_input leaves for backward_weight: of a region that no gradient leaves, all that
  // forward left and the gradients of its outputs; nothing of one that no gradient reaches.
  Affine bytes_for_weights(const Chunk& chunk) const {
    Affine sum;
    for (const RegionId id : chunk.regions) {
      const Region& region = model_.region(id);
      bool leaves = false;
      for (const ValueId input : region.inputs) {
        leaves = leaves || facts_.wants_gradient[index(input)];
      }
      Affine arriving;
      bool reaches = false;
      for (const ValueId output : region.outputs) {
        if (facts_.wants_gradient[index(output)]) {
          arriving = arriving + model_.value(output).bytes();
          reaches = true;
        }
      }
      if (leaves) {
        sum = sum + region.pending_bytes;
      } else if (reaches) {
        sum = sum + region.saved_bytes + arriving;
      }
    }
    return sum;
  }

  // The expert side of a routed value: its reader, or who of this program made it.
  std::uint32_t parts_of(const Buffer& buffer) const {
    if (valid(buffer.chunk) && plan_.chunks[index(buffer.chunk)].experts) {
      return plan_.chunks[index(buffer.chunk)].expert_parts;
    }
    for (const ChunkId maker : facts_.makers[index(buffer.value)]) {
      if (plan_.chunks[index(maker)].program == id_) {
        return plan_.chunks[index(maker)].expert_parts;
      }
    }
    return 1;
  }

  Report& report_;
  const Plan& plan_;
  const ModelGraph& model_;
  const ModelFacts& facts_;
  const std::uint32_t id_;
  const Program& program_;
  std::set<std::pair<ChunkId, std::uint32_t>> split_;  // chunk and micro-batch
};

}  // namespace

void check_buffer_sizes(Report& report, const ModelFacts& facts, std::uint32_t program) {
  BufferSizes(report, facts, program).run();
}

}  // namespace piper
