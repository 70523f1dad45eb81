#include <algorithm>

#include "core/ir/text_reader.h"
#include "core/plan/names.h"
#include "core/plan/tables_text.h"
#include "core/plan/text.h"

namespace piper {
namespace {

class PlanParser {
 public:
  PlanParser(TextReader& in, Plan& plan) : in_(in), plan_(plan) {}

  void parse() {
    in_.expect("piper-plan");
    if (const std::uint32_t version = in_.number(); in_.ok() && version != 1) {
      in_.refuse("expected version 1 of the text of a plan, got " + std::to_string(version),
                 "plan.version");
    }
    in_.end_of_line();
    tables();
    while (in_.ok() && in_.accept("program")) {
      program();
    }
    if (!in_.at_end()) {
      in_.expected("the next item of a plan");
    }
  }

  void tables() {
    header();
    lines("tag", plan_.tag_names, [&](std::string& name) { name = in_.word(); });
    lines("origin", plan_.origins, [&](Provenance& origin) {
      origin.plugin = in_.quoted();
      if (in_.accept("named")) {
        origin.name = in_.quoted();
      }
    });
    nodes();
    lines("chunk", plan_.chunks, [&](Chunk& item) { chunk(item); });
    lines("bucket", plan_.buckets, [&](Bucket& item) { bucket(item); });
    lines("communicator", plan_.communicators, [&](Communicator& item) { communicator(item); });
  }

 private:
  void header() {
    plan_.kind = in_.accept("evaluate") ? Plan::Kind::evaluate : Plan::Kind::train;
    if (plan_.kind == Plan::Kind::train) {
      in_.expect("train");
    }
    in_.expect("world");
    plan_.world = in_.number();
    in_.expect("microbatches");
    plan_.microbatches = in_.number();
    in_.expect("rows");
    plan_.global_rows = in_.integer();
    in_.end_of_line();
  }

  template <typename Items, typename Read>
  void lines(std::string_view keyword, Items& items, Read read) {
    while (in_.ok() && in_.accept(keyword)) {
      in_.item(keyword, items.size());
      items.emplace_back();
      read(items.back());
      in_.end_of_line();
    }
  }

  template <typename Items>
  void list(std::string_view name, Items& items, std::string_view sigil = "") {
    in_.expect(name);
    items_of(items, sigil);
  }

  template <typename Items>
  void items_of(Items& items, std::string_view sigil = "") {
    in_.list("(", ")", [&] {
      if (!sigil.empty()) {
        in_.expect(sigil);
      }
      items.push_back(static_cast<typename Items::value_type>(in_.number()));
    });
  }

  void nodes() {
    // A node has a line of its own.
    const std::size_t most = in_.size();
    while (in_.ok() && in_.accept("nodes")) {
      while (in_.ok() && !in_.at_end_of_line()) {
        const std::uint32_t origin = in_.number();
        in_.expect("*");
        const std::uint32_t count = in_.number();
        if (in_.ok() && count > most - plan_.origin_of_node.size()) {
          in_.refuse("expected no more nodes than the text has lines, got " +
                     std::to_string(count) + " more");
          return;
        }
        plan_.origin_of_node.insert(plan_.origin_of_node.end(), count, origin);
      }
      in_.end_of_line();
    }
  }

  DType dtype() {
    const std::string_view name = in_.word();
    const auto known = parse_dtype(name);
    if (!known) {
      in_.refuse("unknown dtype '" + std::string(name) + "'");
    }
    return known.value_or(DType::float32);
  }

  // The index of the next word among `names`.
  template <typename Enum, typename Names>
  Enum name(const Names& names, const char* what) {
    const std::string_view word = in_.word();
    const auto found = std::find(names.begin(), names.end(), word);
    if (in_.ok() && found == names.end()) {
      in_.refuse("unknown " + std::string(what) + " '" + std::string(word) + "'" +
                 suggest(word, {names.begin(), names.end()}));
    }
    return found == names.end() ? Enum{} : static_cast<Enum>(found - names.begin());
  }

  void chunk(Chunk& chunk) {
    in_.list("{", "}", [&] {
      const std::string_view word = in_.word();
      const auto found = std::find(plan_.tag_names.begin(), plan_.tag_names.end(), word);
      if (in_.ok() && found == plan_.tag_names.end()) {
        in_.refuse("unknown tag '" + std::string(word) + "'" + suggest(word, plan_.tag_names));
      }
      in_.expect("=");
      chunk.tags.push_back({static_cast<TagId>(found - plan_.tag_names.begin()), in_.number()});
    });
    in_.expect("program");
    chunk.program = in_.number();
    if (in_.accept("microbatches")) {
      items_of(chunk.microbatches);
    }
    list("regions", chunk.regions);
    list("buckets", chunk.buckets);
    list("inputs", chunk.inputs, "%");
    list("outputs", chunk.outputs, "%");
    chunk.has_loss = in_.accept("loss");
    chunk.has_backward = !in_.accept("forward_only");
    chunk.recompute = in_.accept("recompute");
    chunk.experts = in_.accept("experts");
    if (chunk.experts || in_.accept("parts")) {
      chunk.expert_parts = in_.number();
    }
    in_.expect("flops");
    chunk.flops = in_.affine();
    in_.expect("saved");
    chunk.saved_bytes = in_.affine();
  }

  void bucket(Bucket& bucket) {
    bucket.dtype = dtype();
    list("parameters", bucket.parameters);
    in_.expect("elements");
    bucket.elements = in_.integer();
    bucket.frozen = in_.accept("frozen");
    bucket.tied = in_.accept("tied");
    in_.expect("group");
    bucket.optimizer_group = in_.number();
    list("homes", bucket.homes);
    if (in_.accept("experts")) {
      bucket.expert_parts = in_.number();
    }
    if (in_.accept("zero")) {
      bucket.zero = in_.number();
      in_.expect("shards");
      bucket.shards = in_.number();
    }
    bucket.keep_gathered = span("keep_gathered");
    bucket.reduce = span("reduce");
  }

  Span span(std::string_view name) {
    if (!in_.accept(name)) {
      return Span::chain;
    }
    in_.expect("step");
    return Span::step;
  }

  void communicator(Communicator& communicator) {
    const bool is_pair = in_.accept("point_to_point");
    if (!is_pair) {
      in_.expect("collective");
    }
    communicator.kind =
        is_pair ? Communicator::Kind::point_to_point : Communicator::Kind::collective;
    communicator.stream = in_.quoted();
    if (is_pair) {
      communicator.from = in_.number();
      in_.expect(">");
      communicator.to = in_.number();
    } else {
      list("ranks", communicator.ranks);
      if (in_.accept("groups")) {
        in_.expect("of");
        communicator.group_size = in_.number();
      }
    }
  }

  void program() {
    in_.item("program", plan_.programs.size());
    Program& program = plan_.programs.emplace_back();
    list("ranks", program.ranks);
    list("buckets", program.buckets);
    in_.end_of_line();
    if (in_.accept("arena")) {
      program.arena_bytes = in_.integer();
      in_.end_of_line();
    }
    lines("buffer", program.buffers, [&](Buffer& item) { buffer(item); });
    while (in_.ok() && in_.accept("stream")) {
      in_.item("stream", program.streams.size());
      Stream& stream = program.streams.emplace_back();
      stream.kind = name<Stream::Kind>(kStreamKinds, "kind of stream");
      stream.name = in_.quoted();
      in_.end_of_line();
      stream.tasks.begin = static_cast<std::uint32_t>(program.tasks.size());
      while (in_.ok() && in_.at_number()) {
        in_.item("task", program.tasks.size());
        Task& item = program.tasks.emplace_back();
        item.stream = static_cast<StreamId>(program.streams.size() - 1);
        task(program, item);
        in_.end_of_line();
      }
      stream.tasks.count = static_cast<std::uint32_t>(program.tasks.size()) - stream.tasks.begin;
    }
  }

  template <typename Id>
  void sigil(char sigil, Id& id) {
    if (in_.accept_sigil(sigil)) {
      id = static_cast<Id>(in_.number());
    }
  }

  template <typename Id>
  void keyword(std::string_view word, Id& id) {
    if (in_.accept(word)) {
      id = static_cast<Id>(in_.number());
    }
  }

  void buffer(Buffer& buffer) {
    buffer.kind = name<Buffer::Kind>(kBufferNames, "kind of buffer");
    sigil('c', buffer.chunk);
    sigil('m', buffer.microbatch);
    sigil('%', buffer.value);
    sigil('b', buffer.bucket);
    buffer.bytes = in_.affine();
    keyword("from", buffer.alloc);
    keyword("to", buffer.free);
    if (in_.accept("at")) {
      buffer.offset = in_.integer();
    }
  }

  Range buffers(std::string_view word, Program& program) {
    Range range{static_cast<std::uint32_t>(program.access.size()), 0};
    if (in_.accept(word)) {
      do {
        program.access.push_back(static_cast<BufferId>(in_.number()));
        ++range.count;
      } while (in_.ok() && in_.at_number());
    }
    return range;
  }

  void task(Program& program, Task& task) {
    task.op = name<Op>(kOpNames, "operation");
    sigil('n', task.node);
    sigil('c', task.chunk);
    sigil('m', task.microbatch);
    if (in_.accept("overlap")) {
      task.overlap = in_.number();
    }
    sigil('%', task.value);
    sigil('b', task.bucket);
    keyword("on", task.communicator);
    keyword("peer", task.peer);
    if (in_.accept("bytes")) {
      task.bytes = in_.affine();
    }
    task.waits.begin = static_cast<std::uint32_t>(program.waits.size());
    if (in_.accept("wait")) {
      do {
        Wait wait;
        wait.previous = in_.accept("^");
        wait.task = static_cast<TaskId>(in_.number());
        program.waits.push_back(wait);
        ++task.waits.count;
      } while (in_.ok() && (in_.at_number() || in_.peek("^")));
    }
    task.reads = buffers("read", program);
    task.writes = buffers("write", program);
    task.frees = buffers("free", program);
    task.records = in_.accept("records");
  }

  TextReader& in_;
  Plan& plan_;
};

}  // namespace

void read_tables(TextReader& in, Plan& plan) {
  PlanParser(in, plan).tables();
}

Expected<Plan> parse_plan(std::string_view text, const ModelGraph& model,
                          const std::string& source) {
  if (const std::size_t remarks = text.find("\n#"); remarks != std::string_view::npos) {
    text = text.substr(0, remarks + 1);
  }
  TextReader in(text, source, "plan.syntax");
  Plan plan;
  PlanParser(in, plan).parse();
  if (!in.ok()) {
    return fail(in.take_error());
  }
  if (auto difference = first_difference(text, print(plan, model), source, "plan.syntax")) {
    return fail(std::move(*difference));
  }
  return plan;
}

}  // namespace piper
