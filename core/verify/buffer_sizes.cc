// plan.form: every buffer is as large, and of the kind, that the model and the tables say.
#include <algorithm>
#include <string>

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
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.bytes != expected_size(buffer)) {
        bad("program " + std::to_string(id_) + ": " + report_.buffer(buffer) +
            " has another size than the model says");
      }
      if (held_by(buffer.kind) == Holds::value && valid(buffer.value) &&
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
        return times(chunk.saved_bytes, chunk.expert_parts);
      }
      case Kind::parameter:
        return has_bucket ? Affine{0, bucket->kept_bytes()} : buffer.bytes;
      case Kind::parameter_gradient:
        return has_bucket ? Affine{0, bucket->shard_gradient_bytes()} : buffer.bytes;
      case Kind::gathered:
        return has_bucket ? Affine{0, bucket->bytes()} : buffer.bytes;
      case Kind::full_gradient:
        return has_bucket ? Affine{0, bucket->gradient_bytes()} : buffer.bytes;
      case Kind::optimizer:
      case Kind::loss_sum:
      case Kind::token_count:
      case Kind::grad_norm:
        break;
    }
    return buffer.bytes;
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
};

}  // namespace

void check_buffer_sizes(Report& report, const ModelFacts& facts, std::uint32_t program) {
  BufferSizes(report, facts, program).run();
}

}  // namespace piper
