// plan.form, first part: every number is in range, so that the other rules may use them as indices.
#include <algorithm>
#include <string>

#include "core/plan/names.h"
#include "core/verify/rules.h"

namespace piper {
namespace {

class Structure {
 public:
  explicit Structure(Report& report) : report_(report), plan_(report.plan), model_(report.model) {}

  void run() {
    header();
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      chunk(c);
    }
    for (std::uint32_t b = 0; b < plan_.buckets.size(); ++b) {
      bucket(b);
    }
    ranks();
    for (std::uint32_t c = 0; c < plan_.communicators.size(); ++c) {
      communicator(c);
    }
    for (const std::uint32_t origin : plan_.origin_of_node) {
      if (origin >= plan_.origins.size()) {
        bad("a node has origin " + std::to_string(origin) + " of " +
            std::to_string(plan_.origins.size()));
        break;
      }
    }
    for (std::uint32_t p = 0; p < plan_.programs.size() && report_.ok(); ++p) {
      program(p);
    }
  }

 private:
  void bad(std::string message) { report_.add("plan.form", std::move(message)); }

  template <typename Ids>
  void in_range(const std::string& who, const Ids& ids, std::size_t size, const char* what) {
    for (const auto id : ids) {
      if (static_cast<std::uint32_t>(id) >= size) {
        bad(who + ": no " + what + " " + std::to_string(static_cast<std::uint32_t>(id)));
        return;
      }
    }
  }

  void header() {
    if (plan_.world == 0 || plan_.microbatches == 0) {
      bad("expected at least one rank and one micro-batch, got " + std::to_string(plan_.world) +
          " and " + std::to_string(plan_.microbatches));
    }
    std::size_t tasks = 0;
    for (const Program& program : plan_.programs) {
      tasks += program.tasks.size();
    }
    if (plan_.microbatches > tasks) {  // each has a forward
      bad(std::to_string(plan_.microbatches) + " micro-batches, but only " + std::to_string(tasks) +
          " tasks");
    }
  }

  void chunk(std::uint32_t id) {
    const Chunk& chunk = plan_.chunks[id];
    const std::string name = "chunk " + std::to_string(id);
    in_range(name, chunk.regions, model_.regions.size(), "region");
    in_range(name, chunk.buckets, plan_.buckets.size(), "bucket");
    in_range(name, chunk.inputs, model_.values.size(), "value");
    in_range(name, chunk.outputs, model_.values.size(), "value");
    in_range(name, std::vector<std::uint32_t>{chunk.program}, plan_.programs.size(), "program");
    in_range(name, chunk.microbatches, plan_.microbatches, "micro-batch");
    if (!is_ascending(chunk.microbatches)) {
      bad(name + ": expected its micro-batches to be ascending");
    }
    if (chunk.expert_parts == 0 || chunk.expert_parts > plan_.world ||
        (!chunk.experts && chunk.expert_parts != 1)) {
      bad(name + ": " + std::to_string(chunk.expert_parts) + " parts of experts in a world of " +
          std::to_string(plan_.world));
    }
  }

  void bucket(std::uint32_t id) {
    const Bucket& bucket = plan_.buckets[id];
    const std::string name = "bucket " + std::to_string(id);
    in_range(name, bucket.parameters, model_.parameters.size(), "parameter");
    in_range(name, bucket.homes, plan_.programs.size(), "program");
    if (bucket.homes.empty() || !is_ascending(bucket.homes)) {
      bad(name + ": expected its homes to be ascending, and at least one");
    }
    constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
    if (bucket.elements < 0 || bucket.elements > kMostElements || bucket.zero > 3 ||
        bucket.shards == 0 || bucket.shards > plan_.world || bucket.expert_parts == 0 ||
        bucket.expert_parts > plan_.world || (bucket.zero == 0) != (bucket.shards == 1)) {
      bad(name + ": " + std::to_string(bucket.elements) + " elements, " +
          std::to_string(bucket.expert_parts) + " parts of experts, ZeRO stage " +
          std::to_string(bucket.zero) + " over " + std::to_string(bucket.shards) +
          " shards in a world of " + std::to_string(plan_.world));
    }
  }

  static bool is_ascending(const std::vector<std::uint32_t>& list) {
    return std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) == list.end();
  }

  void ranks() {
    std::vector<std::uint32_t> program_of(plan_.world, 0xffffffff);
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      const std::vector<std::uint32_t>& members = plan_.programs[p].ranks;
      if (members.empty()) {
        bad("program " + std::to_string(p) + " has no ranks");
        continue;
      }
      for (const std::uint32_t rank : members) {
        if (rank >= plan_.world) {
          bad("program " + std::to_string(p) + ": rank " + std::to_string(rank) +
              " of a world of " + std::to_string(plan_.world));
        } else if (program_of[rank] != 0xffffffff) {
          bad("rank " + std::to_string(rank) + " is in program " +
              std::to_string(program_of[rank]) + " and in program " + std::to_string(p));
        } else {
          program_of[rank] = p;
        }
      }
      const std::int64_t fewest = static_cast<std::int64_t>(members.size()) * plan_.microbatches;
      if (plan_.global_rows < fewest) {
        bad("program " + std::to_string(p) + ": expected at least " + std::to_string(fewest) +
            " rows (one a micro-batch of each rank), got " + std::to_string(plan_.global_rows));
      }
    }
    for (std::uint32_t rank = 0; rank < program_of.size(); ++rank) {
      if (program_of[rank] == 0xffffffff) {
        bad("rank " + std::to_string(rank) + " has no program");
        break;
      }
    }
  }

  void communicator(std::uint32_t id) {
    const Communicator& communicator = plan_.communicators[id];
    const std::string name = "communicator " + std::to_string(id);
    if (communicator.kind == Communicator::Kind::collective) {
      in_range(name, communicator.ranks, plan_.world, "rank");
      std::vector<std::uint32_t> sorted = communicator.ranks;
      std::sort(sorted.begin(), sorted.end());
      if (sorted.empty() || !is_ascending(sorted)) {
        bad(name + ": expected its ranks to be distinct, and at least one");
      } else if (communicator.group_size != 0 && sorted.size() % communicator.group_size != 0) {
        bad(name + ": expected groups of equal size, got " + std::to_string(sorted.size()) +
            " ranks in groups of " + std::to_string(communicator.group_size));
      }
      return;
    }
    const std::vector<std::uint32_t> ends{communicator.from, communicator.to};
    in_range(name, ends, plan_.programs.size(), "program");
    if (!report_.ok()) {
      return;
    }
    const std::size_t from = plan_.programs[communicator.from].ranks.size();
    const std::size_t to = plan_.programs[communicator.to].ranks.size();
    if (communicator.from == communicator.to || from != to) {
      bad(name + ": expected two programs of equal size, got program " +
          std::to_string(communicator.from) + " of " + std::to_string(from) + " and program " +
          std::to_string(communicator.to) + " of " + std::to_string(to));
    }
  }

  void program(std::uint32_t id) {
    const Program& program = plan_.programs[id];
    name_ = "program " + std::to_string(id);
    in_range(name_, program.buckets, plan_.buckets.size(), "bucket");
    streams(program);
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      buffer(program, program.buffers[b], b);
    }
    in_range(name_, program.access, program.buffers.size(), "buffer");
    for (std::size_t t = 0; t < program.tasks.size() && report_.ok(); ++t) {
      task(program, program.tasks[t], t);
    }
    for (std::size_t t = 0; t < program.tasks.size() && report_.ok(); ++t) {
      waits(id, static_cast<std::uint32_t>(t));
    }
  }

  void streams(const Program& program) {
    std::uint64_t next = 0;
    std::size_t compute = 0;
    for (std::size_t s = 0; s < program.streams.size(); ++s) {
      const Stream& stream = program.streams[s];
      if (stream.tasks.begin != next) {
        bad(name_ + ": stream " + stream.name + " starts at task " +
            std::to_string(stream.tasks.begin) + ", expected " + std::to_string(next));
        return;
      }
      next += stream.tasks.count;
      compute += stream.kind == Stream::Kind::compute ? 1 : 0;
    }
    if (next != program.tasks.size()) {
      bad(name_ + ": its streams have " + std::to_string(next) + " tasks, expected " +
          std::to_string(program.tasks.size()));
      return;
    }
    if (compute > 1) {
      bad(name_ + ": expected one compute stream, got " + std::to_string(compute));
    }
    for (std::size_t s = 0; s < program.streams.size(); ++s) {
      for (const Task& task : program.tasks_of(program.streams[s])) {
        if (index(task.stream) != s) {
          bad(name_ + ": a task of stream " + program.streams[s].name + " says it is on stream " +
              std::to_string(index(task.stream)));
          return;
        }
      }
    }
  }

  template <typename Id>
  bool is_bad(Id id, std::size_t size) {
    return valid(id) && index(id) >= size;
  }

  // Where `microbatch` is the number of a chain. There are at most as many as tasks.
  void buffer(const Program& program, const Buffer& buffer, std::size_t id) {
    if (is_bad(buffer.value, model_.values.size()) || is_bad(buffer.chunk, plan_.chunks.size()) ||
        is_bad(buffer.bucket, plan_.buckets.size()) ||
        buffer.microbatch >=
            (holds_chain(buffer.kind) ? program.tasks.size() : std::size_t{plan_.microbatches}) ||
        is_bad(buffer.alloc, program.tasks.size()) || is_bad(buffer.free, program.tasks.size()) ||
        static_cast<std::size_t>(buffer.kind) >= kBufferKinds) {
      bad(name_ + ": buffer " + std::to_string(id) + " names something that is not there");
    } else if (buffer.bytes.per_row < 0 || buffer.bytes.fixed < 0) {
      bad(name_ + ": buffer " + std::to_string(id) + " has a negative size");
    } else if (buffer.in_arena() && buffer.persistent()) {
      bad(name_ + ": buffer " + std::to_string(id) +
          " lives as long as the job, and has a place in the arena");
    }
  }

  static bool fits(Range range, std::size_t size) {
    return std::uint64_t{range.begin} + range.count <= size;
  }

  void task(const Program& program, const Task& task, std::size_t id) {
    if (static_cast<std::size_t>(task.op) >= kOps || is_bad(task.chunk, plan_.chunks.size()) ||
        is_bad(task.value, model_.values.size()) || is_bad(task.bucket, plan_.buckets.size()) ||
        is_bad(task.communicator, plan_.communicators.size()) ||
        task.microbatch >=
            (counts_chains(task.op) ? program.tasks.size() : std::size_t{plan_.microbatches}) ||
        index(task.node) >= plan_.origin_of_node.size() ||
        is_bad(task.peer, plan_.origin_of_node.size()) || !fits(task.waits, program.waits.size()) ||
        !fits(task.reads, program.access.size()) || !fits(task.writes, program.access.size()) ||
        !fits(task.frees, program.access.size())) {
      bad(name_ + ": task " + std::to_string(id) + " names something that is not there");
    }
  }

  void waits(std::uint32_t program_id, std::uint32_t id) {
    const Program& program = plan_.programs[program_id];
    for (const Wait& wait : program.waits_of(program.tasks[id])) {
      if (index(wait.task) >= program.tasks.size()) {
        bad(name_ + ": task " + std::to_string(id) + " waits for task " +
            std::to_string(index(wait.task)) + " of " + std::to_string(program.tasks.size()));
      } else if (!program.task(wait.task).records) {
        report_.add("plan.form",
                    report_.task({program_id, id}) + " waits for " +
                        report_.task({program_id, index(wait.task)}) + ", which records no event",
                    {program_id, id});
      }
    }
  }

  Report& report_;
  const Plan& plan_;
  const ModelGraph& model_;
  std::string name_;
};

}  // namespace

void check_structure(Report& report) {
  Structure(report).run();
}

}  // namespace piper
