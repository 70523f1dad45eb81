#include "core/show/json.h"

#include <algorithm>

#include "core/plan/names.h"
#include "core/plan/node_name.h"
#include "core/plan/text.h"
#include "core/show/json_writer.h"
#include "core/verify/rank_peaks.h"

namespace piper {
namespace {

class PlanJson {
 public:
  PlanJson(std::ostream& out, const Plan& plan, const ModelGraph& model)
      : plan_(plan), model_(model), names_(plan, model), out_(out) {}

  void write(std::optional<std::uint32_t> only) {
    out_.begin_object();
    out_.field("format", std::string_view("piper-plan")).field("version", 1);
    out_.field("hash", hash(plan_, model_)).field("model", model_.name);
    out_.field("kind", plan_.kind == Plan::Kind::train ? std::string_view("train") : "evaluate");
    out_.field("world", plan_.world).field("microbatches", plan_.microbatches);
    out_.field("rows", plan_.global_rows);
    table("parameters", model_.parameters.size(), [&](std::uint32_t id) {
      const Parameter& parameter = model_.parameters[id];
      out_.field("name", parameter.name).field("dtype", to_string(parameter.dtype));
      numbers("shape", parameter.shape);
    });
    table("origins", plan_.origins.size(), [&](std::uint32_t id) { origin(plan_.origins[id]); });
    table("chunks", plan_.chunks.size(), [&](std::uint32_t id) { chunk(ChunkId{id}); });
    table("buckets", plan_.buckets.size(), [&](std::uint32_t id) { bucket(plan_.buckets[id]); });
    table("communicators", plan_.communicators.size(),
          [&](std::uint32_t id) { communicator(plan_.communicators[id]); });
    out_.new_line().key("programs").begin_array();
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      if (!only || *only == p) {
        out_.new_line();
        program(p, plan_.programs[p]);
      }
    }
    out_.end_array().end_object();
    out_.finish();
  }

 private:
  // An array of objects that start with their number, one a line.
  template <typename Item>
  void table(std::string_view name, std::size_t count, Item&& item) {
    out_.new_line().key(name).begin_array();
    for (std::uint32_t id = 0; id < count; ++id) {
      out_.new_line().begin_object().field("id", id);
      item(id);
      out_.end_object();
    }
    out_.end_array();
  }

  template <typename Items>
  void numbers(std::string_view name, const Items& items) {
    out_.key(name).begin_array();
    for (const auto& item : items) {
      out_.value(static_cast<std::int64_t>(item));
    }
    out_.end_array();
  }

  template <typename Id>
  void number(std::string_view name, Id id) {
    if (valid(id)) {
      out_.field(name, index(id));
    }
  }

  void affine(std::string_view name, Affine size) {
    out_.key(name).begin_object();
    out_.field("per_row", size.per_row).field("fixed", size.fixed).end_object();
  }

  void origin(const Provenance& origin) {
    out_.field("plugin", origin.plugin);
    if (!origin.name.empty()) {
      out_.field("name", origin.name);
    }
    if (origin.where.known()) {
      out_.field("file", origin.where.file).field("line", origin.where.line);
      out_.field("column", origin.where.column);
    }
  }

  void chunk(ChunkId id) {
    const Chunk& chunk = plan_.chunks[index(id)];
    out_.field("stage", names_.stage(id)).field("program", chunk.program);
    out_.key("tags").begin_object();
    for (const Tag& tag : chunk.tags) {
      out_.field(tag_name(plan_, model_, tag.name), tag.index);
    }
    out_.end_object();
    if (!chunk.microbatches.empty()) {
      numbers("microbatches", chunk.microbatches);
    }
    numbers("regions", chunk.regions);
    numbers("buckets", chunk.buckets);
    numbers("inputs", chunk.inputs);
    numbers("outputs", chunk.outputs);
    out_.field("has_loss", chunk.has_loss).field("has_backward", chunk.has_backward);
    out_.field("recompute", chunk.recompute);
    out_.field("experts", chunk.experts).field("expert_parts", chunk.expert_parts);
    affine("flops", chunk.flops);
    affine("saved_bytes", chunk.saved_bytes);
  }

  void bucket(const Bucket& bucket) {
    out_.field("dtype", to_string(bucket.dtype));
    numbers("parameters", bucket.parameters);
    out_.field("elements", bucket.elements).field("frozen", bucket.frozen);
    out_.field("tied", bucket.tied).field("optimizer_group", bucket.optimizer_group);
    numbers("homes", bucket.homes);
    out_.field("expert_parts", bucket.expert_parts).field("zero", bucket.zero);
    out_.field("shards", bucket.shards);
    out_.field("keep_gathered", span(bucket.keep_gathered)).field("reduce", span(bucket.reduce));
  }

  static std::string_view span(Span span) { return span == Span::chain ? "chain" : "step"; }

  void communicator(const Communicator& communicator) {
    const bool is_pair = communicator.kind == Communicator::Kind::point_to_point;
    out_.field("kind", std::string_view(is_pair ? "point_to_point" : "collective"));
    out_.field("stream", communicator.stream);
    if (is_pair) {
      out_.field("from", communicator.from).field("to", communicator.to);
    } else {
      numbers("ranks", communicator.ranks);
      if (communicator.group_size != 0) {
        out_.field("group_size", communicator.group_size);
      }
    }
  }

  void program(std::uint32_t id, const Program& program) {
    out_.begin_object().field("id", id);
    numbers("ranks", program.ranks);
    numbers("buckets", program.buckets);
    peak(largest(rank_peaks(plan_, model_, id)).peak);
    out_.field("arena_bytes", program.arena_bytes);
    table("buffers", program.buffers.size(),
          [&](std::uint32_t buffer) { this->buffer(program.buffers[buffer]); });
    table("streams", program.streams.size(), [&](std::uint32_t s) {
      const Stream& stream = program.streams[s];
      out_.field("name", stream.name);
      out_.field("kind", kStreamKinds[static_cast<std::size_t>(stream.kind)]);
      out_.key("tasks").begin_array();
      for (const Task& task : program.tasks_of(stream)) {
        out_.new_line();
        this->task(id, program, task);
      }
      out_.end_array();
    });
    out_.end_object();
  }

  void peak(const Peak& peak) {
    out_.key("peak").begin_object().field("bytes", peak.bytes);
    number("task", peak.task);
    for (std::size_t kind = 0; kind < kMemoryKinds; ++kind) {
      out_.field(to_string(static_cast<MemoryKind>(kind)), peak.of_kind[kind]);
    }
    out_.end_object();
  }

  void buffer(const Buffer& buffer) {
    out_.field("kind", to_string(buffer.kind));
    number("chunk", buffer.chunk);
    if (has_microbatch(buffer.kind) || holds_chain(buffer.kind)) {
      out_.field("microbatch", buffer.microbatch);
    }
    number("value", buffer.value);
    number("bucket", buffer.bucket);
    affine("bytes", buffer.bytes);
    number("alloc", buffer.alloc);
    number("free", buffer.free);
    if (buffer.in_arena()) {
      out_.field("offset", buffer.offset);
    }
  }

  void task(std::uint32_t p, const Program& program, const Task& task) {
    out_.begin_object().field("id", &task - program.tasks.data());
    out_.field("name", names_.of(plan_, p, task)).field("op", to_string(task.op));
    number("node", task.node);
    number("chunk", task.chunk);
    if (valid(task.chunk) || valid(task.value) || counts_chains(task.op)) {
      out_.field("microbatch", task.microbatch);
    }
    if (task.overlap != 0) {
      out_.field("overlap", task.overlap);
    }
    number("value", task.value);
    number("bucket", task.bucket);
    number("communicator", task.communicator);
    number("peer", task.peer);
    if (task.bytes != Affine{}) {
      affine("bytes", task.bytes);
    }
    if (index(task.node) < plan_.origin_of_node.size()) {
      out_.field("origin", plan_.origin_of_node[index(task.node)]);
    }
    out_.key("waits").begin_array();
    for (const Wait& wait : program.waits_of(task)) {
      out_.begin_object().field("task", index(wait.task));
      out_.field("previous", wait.previous).end_object();
    }
    out_.end_array();
    numbers("reads", program.reads_of(task));
    numbers("writes", program.writes_of(task));
    numbers("frees", program.frees_of(task));
    out_.field("records", task.records).end_object();
  }

  const Plan& plan_;
  const ModelGraph& model_;
  NodeNames names_;
  JsonWriter out_;
};

}  // namespace

void write_json(std::ostream& out, const Plan& plan, const ModelGraph& model,
                std::optional<std::uint32_t> program) {
  PlanJson(out, plan, model).write(program);
}

}  // namespace piper
