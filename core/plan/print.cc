#include <algorithm>
#include <cstdio>

#include "core/base/hash.h"
#include "core/ir/text_reader.h"
#include "core/plan/names.h"
#include "core/plan/tables_text.h"
#include "core/plan/text.h"
#include "core/plan/text_writer.h"

namespace piper {
namespace {

constexpr std::size_t kRunsPerLine = 16;

template <typename Sink>
class PlanPrinter {
 public:
  PlanPrinter(const Plan& plan, const ModelGraph& model, Sink& sink)
      : plan_(plan), model_(model), out_(sink) {}

  void print() {
    out_ << "piper-plan 1\n";
    tables();
    for (std::size_t id = 0; id < plan_.programs.size(); ++id) {
      program(number(id), plan_.programs[id]);
    }
    out_.flush();
  }

  void print_tables() {
    tables();
    out_.flush();
  }

 private:
  void tables() {
    out_ << (plan_.kind == Plan::Kind::train ? "train" : "evaluate");
    out_ << " world " << plan_.world << " microbatches " << plan_.microbatches << " rows "
         << plan_.global_rows << '\n';
    const std::vector<std::string>& names =
        plan_.tag_names.empty() ? model_.tag_names : plan_.tag_names;
    for (std::size_t id = 0; id < names.size(); ++id) {
      out_ << "tag " << number(id) << ' ' << names[id] << '\n';
    }
    origins();
    for (std::size_t id = 0; id < plan_.chunks.size(); ++id) {
      chunk(number(id), plan_.chunks[id]);
    }
    for (std::size_t id = 0; id < plan_.buckets.size(); ++id) {
      bucket(number(id), plan_.buckets[id]);
    }
    for (std::size_t id = 0; id < plan_.communicators.size(); ++id) {
      communicator(number(id), plan_.communicators[id]);
    }
  }

  static std::uint32_t number(std::size_t value) { return static_cast<std::uint32_t>(value); }

  template <typename Items>
  void list(std::string_view open, const Items& items, std::string_view sigil = "") {
    out_ << open;
    bool first = true;
    for (const auto& item : items) {
      out_ << (first ? "" : ", ") << sigil << static_cast<std::uint32_t>(item);
      first = false;
    }
    out_ << ')';
  }

  void quoted(std::string_view text) {
    std::string buffer;
    append_quoted(buffer, text);
    out_ << buffer;
  }

  void origins() {
    for (std::size_t id = 0; id < plan_.origins.size(); ++id) {
      out_ << "origin " << number(id) << ' ';
      quoted(plan_.origins[id].plugin);
      if (!plan_.origins[id].name.empty()) {
        out_ << " named ";
        quoted(plan_.origins[id].name);
      }
      out_ << '\n';
    }
    const std::vector<std::uint32_t>& nodes = plan_.origin_of_node;
    std::size_t runs = 0;
    for (std::size_t begin = 0, end = 0; begin < nodes.size(); begin = end, ++runs) {
      while (end < nodes.size() && nodes[end] == nodes[begin]) {
        ++end;
      }
      out_ << (runs % kRunsPerLine == 0 ? (runs == 0 ? "nodes " : "\nnodes ") : " ");
      out_ << nodes[begin] << '*' << number(end - begin);
    }
    out_ << (runs == 0 ? "" : "\n");
  }

  void chunk(std::uint32_t id, const Chunk& chunk) {
    out_ << "chunk " << id << " {";
    for (std::size_t i = 0; i < chunk.tags.size(); ++i) {
      out_ << (i == 0 ? "" : ", ") << tag_name(plan_, model_, chunk.tags[i].name) << '='
           << chunk.tags[i].index;
    }
    out_ << "} program " << chunk.program;
    if (!chunk.microbatches.empty()) {
      list(" microbatches (", chunk.microbatches);
    }
    list(" regions (", chunk.regions);
    list(" buckets (", chunk.buckets);
    list(" inputs (", chunk.inputs, "%");
    list(" outputs (", chunk.outputs, "%");
    out_ << (chunk.has_loss ? " loss" : "") << (chunk.has_backward ? "" : " forward_only")
         << (chunk.recompute ? " recompute" : "");
    if (chunk.experts || chunk.expert_parts != 1) {
      out_ << (chunk.experts ? " experts " : " parts ") << chunk.expert_parts;
    }
    out_ << " flops " << chunk.flops << " saved " << chunk.saved_bytes << '\n';
  }

  void bucket(std::uint32_t id, const Bucket& bucket) {
    out_ << "bucket " << id << ' ' << to_string(bucket.dtype);
    list(" parameters (", bucket.parameters);
    out_ << " elements " << bucket.elements << (bucket.frozen ? " frozen" : "")
         << (bucket.tied ? " tied" : "") << " group " << bucket.optimizer_group;
    list(" homes (", bucket.homes);
    if (bucket.expert_parts != 1) {
      out_ << " experts " << bucket.expert_parts;
    }
    if (bucket.zero != 0 || bucket.shards != 1) {
      out_ << " zero " << bucket.zero << " shards " << bucket.shards;
    }
    out_ << (bucket.keep_gathered == Span::step ? " keep_gathered step" : "")
         << (bucket.reduce == Span::step ? " reduce step" : "") << '\n';
  }

  void communicator(std::uint32_t id, const Communicator& communicator) {
    const bool is_pair = communicator.kind == Communicator::Kind::point_to_point;
    out_ << "communicator " << id << (is_pair ? " point_to_point " : " collective ");
    quoted(communicator.stream);
    if (is_pair) {
      out_ << ' ' << communicator.from << " > " << communicator.to;
    } else {
      list(" ranks (", communicator.ranks);
      if (communicator.group_size != 0) {
        out_ << " groups of " << communicator.group_size;
      }
    }
    out_ << '\n';
  }

  void program(std::uint32_t id, const Program& program) {
    out_ << "program " << id;
    list(" ranks (", program.ranks);
    list(" buckets (", program.buckets);
    out_ << '\n';
    if (program.arena_bytes != 0) {
      out_ << "  arena " << program.arena_bytes << '\n';
    }
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      buffer(number(i), program.buffers[i]);
    }
    for (std::size_t i = 0; i < program.streams.size(); ++i) {
      const Stream& stream = program.streams[i];
      out_ << "  stream " << number(i) << ' ' << kStreamKinds[static_cast<std::size_t>(stream.kind)]
           << ' ';
      quoted(stream.name);
      out_ << '\n';
      const std::uint32_t end =
          std::min(stream.tasks.begin + stream.tasks.count, number(program.tasks.size()));
      for (std::uint32_t task_id = stream.tasks.begin; task_id < end; ++task_id) {
        task(task_id, program, program.tasks[task_id]);
      }
    }
  }

  void microbatch(bool is_expected, std::uint32_t microbatch) {
    if (is_expected || microbatch != 0) {
      out_ << " m" << microbatch;
    }
  }

  template <typename Id>
  void sigil(std::string_view sigil, Id id) {
    if (valid(id)) {
      out_ << sigil << index(id);
    }
  }

  void buffer(std::uint32_t id, const Buffer& buffer) {
    out_.start_line();
    out_ << "  buffer " << id;
    out_.pad(14);
    out_ << to_string(buffer.kind);
    sigil(" c", buffer.chunk);
    microbatch(has_microbatch(buffer.kind) && !is_routed(buffer.kind), buffer.microbatch);
    sigil(" %", buffer.value);
    sigil(" b", buffer.bucket);
    out_.pad(40);
    out_ << buffer.bytes;
    sigil(" from ", buffer.alloc);
    sigil(" to ", buffer.free);
    if (buffer.in_arena()) {
      out_ << " at " << buffer.offset;
    }
    out_ << '\n';
  }

  void numbers(std::string_view name, std::span<const BufferId> ids) {
    if (!ids.empty()) {
      out_ << name;
      for (const BufferId id : ids) {
        out_ << ' ' << index(id);
      }
    }
  }

  void task(std::uint32_t id, const Program& program, const Task& task) {
    out_.start_line();
    out_ << "    " << id;
    out_.pad(10);
    out_ << to_string(task.op);
    out_.pad(25);
    sigil(" n", task.node);
    sigil(" c", task.chunk);
    microbatch(runs_chunk(task.op) || is_point_to_point(task.op), task.microbatch);
    if (task.overlap != 0) {
      out_ << " overlap " << task.overlap;
    }
    sigil(" %", task.value);
    sigil(" b", task.bucket);
    sigil(" on ", task.communicator);
    sigil(" peer ", task.peer);
    if (task.bytes != Affine{}) {
      out_ << " bytes " << task.bytes;
    }
    if (task.waits.count + task.reads.count + task.writes.count + task.frees.count > 0 ||
        task.records) {
      out_.pad(45);
      if (task.waits.count > 0) {
        out_ << " wait";
        for (const Wait& wait : program.waits_of(task)) {
          out_ << (wait.previous ? " ^" : " ") << index(wait.task);
        }
      }
      numbers(" read", program.reads_of(task));
      numbers(" write", program.writes_of(task));
      numbers(" free", program.frees_of(task));
      out_ << (task.records ? " records" : "");
    }
    out_ << '\n';
  }

  const Plan& plan_;
  const ModelGraph& model_;
  TextWriter<Sink> out_;
};

template <typename Sink>
void print_to(const Plan& plan, const ModelGraph& model, Sink sink) {
  PlanPrinter<Sink>(plan, model, sink).print();
}

}  // namespace

std::string tag_name(const Plan& plan, const ModelGraph& model, TagId tag) {
  const std::vector<std::string>& names = plan.tag_names.empty() ? model.tag_names : plan.tag_names;
  return index(tag) < names.size() ? names[index(tag)] : "tag" + std::to_string(index(tag));
}

std::string tags_of(const Plan& plan, const ModelGraph& model, ChunkId chunk) {
  if (index(chunk) >= plan.chunks.size() || plan.chunks[index(chunk)].tags.empty()) {
    return "chunk " + std::to_string(index(chunk));
  }
  std::string text;
  for (const Tag& tag : plan.chunks[index(chunk)].tags) {
    text += (text.empty() ? "" : " ") + tag_name(plan, model, tag.name) + '=' +
            std::to_string(tag.index);
  }
  return text;
}

std::string print(const Plan& plan, const ModelGraph& model) {
  std::string text;
  std::size_t lines = 100;
  for (const Program& program : plan.programs) {
    lines += program.tasks.size() + program.buffers.size();
  }
  text.reserve(lines * 100);
  print_to(plan, model, [&text](std::string_view piece) { text += piece; });
  return text;
}

std::string print_tables(const Plan& plan, const ModelGraph& model) {
  std::string text;
  const auto sink = [&text](std::string_view piece) { text += piece; };
  PlanPrinter(plan, model, sink).print_tables();
  return text;
}

std::string hash(const Plan& plan, const ModelGraph& model) {
  Fnv1a state;
  print_to(plan, model, [&state](std::string_view piece) { state.add(piece); });
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(state.value()));
  return digits;
}

}  // namespace piper
