// The plan: for each group of ranks that share a program, a total order of tasks on each stream,
// with waits, buffers, frees and communicators as data. It is all the runtime, the verifier, the
// printer and the simulator see; nothing in it is looked up by type.
//
// A plan is one period (a training step, or one evaluation batch) that repeats. Tasks of a program
// are numbered stream by stream, in the order in which the stream runs them: on one stream, `a < b`
// means a runs before b.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/directives/claim.h"
#include "core/directives/replicate.h"
#include "core/ir/model_graph.h"
#include "core/plan/buffer_kind.h"
#include "core/plan/op.h"

namespace piper {

// A fused run of regions with one place: the unit of forward and backward.
struct Chunk {
  std::vector<RegionId> regions;  // in execution order; backward runs them reversed
  std::vector<Tag> tags;          // common to all its regions
  std::uint32_t program = 0;      // who executes it: Plan::programs
  std::vector<BucketId> buckets;  // parameters it touches
  std::vector<ValueId> inputs;    // from other chunks or the data loader, in argument order
  std::vector<ValueId> outputs;   // that other chunks, or the loss, use
  bool has_loss = false;          // computes ModelGraph::loss
  bool has_backward =
      true;  // false: nothing to differentiate (all frozen, no input needs a gradient)
  // Its forward keeps nothing but its inputs; when the plan trains, `recompute` runs it again
  // before the backward. Only with has_backward.
  bool recompute = false;
  Affine flops;  // forward
  Affine saved_bytes;
  std::vector<std::uint32_t> microbatches;  // that it runs, ascending; empty: all of them
  bool experts =
      false;  // partitioned over expert groups: its values come and go through all-to-alls
  // Members of an expert group. All rows of a group may arrive at one of them, so what routed
  // buffers and `saved` need at most is this many times what the model says.
  std::uint32_t expert_parts = 1;
  bool operator==(const Chunk&) const = default;
};

// Parameters that are reduced and updated together: uniform in homes, dtype, optimizer group and
// frozen flag.
struct Bucket {
  std::vector<ParameterId> parameters;
  DType dtype = DType::float32;
  bool frozen = false;
  bool tied = false;                  // used by chunks of several places
  std::uint32_t optimizer_group = 0;  // index into the job's groups, the default group last
  std::vector<std::uint32_t> homes;   // programs that hold it, ascending
  std::int64_t elements = 0;          // on one rank, when nothing is sharded
  // Experts: parameters are in this many equal blocks, one for each member of an expert group.
  std::uint32_t expert_parts = 1;
  // ZeRO: what is sharded (0 nothing, 1 the optimizer, 2 gradients too, 3 parameters too) and over
  // how many ranks. A shard has padded_elements() / shards elements; the last ones of the last
  // shard are padding.
  std::uint32_t zero = 0, shards = 1;
  Span keep_gathered = Span::chain, reduce = Span::chain;

  std::int64_t padded_elements() const { return (elements + shards - 1) / shards * shards; }
  std::int64_t shard_elements() const { return padded_elements() / shards; }
  // On one rank: gathered parameters, the full gradient, and what is kept between steps.
  std::int64_t bytes() const { return padded_elements() * size_of(dtype); }
  std::int64_t gradient_bytes() const {
    return frozen ? 0 : padded_elements() * size_of(gradient_dtype(dtype));
  }
  std::int64_t kept_bytes() const { return zero == 3 ? bytes() / shards : bytes(); }
  std::int64_t shard_gradient_bytes() const { return gradient_bytes() / shards; }
  bool operator==(const Bucket&) const = default;
};

// What a task works on. Contents are ordered by the plan alone; accesses.h says what every operation
// reads and writes.
struct Buffer {
  using Kind = BufferKind;  // buffer_kind.h: what each holds, and which of the next four say which
  Kind kind = Kind::activation;
  ValueId value = none<ValueId>();
  std::uint32_t microbatch = 0;  // or the number of a chain
  ChunkId chunk = none<ChunkId>();
  BucketId bucket = none<BucketId>();
  Affine bytes;  // of its micro-batch's rows
  TaskId alloc =
      none<TaskId>();  // allocated at the start of this task; none: lives as long as the job
  TaskId free = none<TaskId>();  // freed at the end of this task, which is after every other user
  // Where it begins in the program's arena; kNoOffset: it comes from the allocator, or lives as
  // long as the job. It ends after what its micro-batch takes on coordinate 0, which is the most.
  std::int64_t offset = kNoOffset;
  static constexpr std::int64_t kNoOffset = -1;

  bool persistent() const { return !valid(alloc); }
  bool in_arena() const { return offset != kNoOffset; }
  bool operator==(const Buffer&) const = default;
};

// Wait for the event that `task` of the same program records; `previous`: the record of the period
// before (no wait in the first one).
struct Wait {
  TaskId task = none<TaskId>();
  bool previous = false;
  bool operator==(const Wait&) const = default;
};

inline constexpr std::int64_t kArenaAlignment = 64;

struct Range {
  std::uint32_t begin = 0, count = 0;
  bool operator==(const Range&) const = default;
};

struct Task {
  NodeId node =
      none<NodeId>();  // identity across programs; a send and its receive are linked by `peer`
  Op op = Op::forward;
  StreamId stream = none<StreamId>();
  ChunkId chunk = none<ChunkId>();     // chunks
  std::uint32_t microbatch = 0;        // chunks, sends, receives
  std::uint32_t overlap = 0;           // chunks: of one number other than 0, an overlap group
  ValueId value = none<ValueId>();     // sends, receives
  BucketId bucket = none<BucketId>();  // reductions, gathers, updates (of chain `microbatch`)
  CommId communicator = none<CommId>();
  NodeId peer = none<NodeId>();       // send: its receive's node; recv: its send's node
  Affine bytes;                       // moved by communication
  bool records = false;               // some task waits for it
  Range waits, reads, writes, frees;  // into the pools of the program; allocs are Buffer::alloc
  bool operator==(const Task&) const = default;
};

struct Stream {
  enum class Kind : std::uint8_t { compute, communication, host };
  std::string name;  // "compute", "send 0>1", "reduce", "scalar", "input"
  Kind kind = Kind::compute;
  Range tasks;  // contiguous
  bool operator==(const Stream&) const = default;
};

// What every rank of one place runs. Member i of `ranks` has coordinate i: it takes block i of the
// rows, and its peers are members i of the other groups.
struct Program {
  std::vector<std::uint32_t> ranks;
  std::vector<Stream> streams;
  std::vector<Task> tasks;
  std::vector<Buffer> buffers;
  // One block of memory for received values, gathered parameters and full gradients: buffers at
  // overlapping offsets are used one after another. Offsets are multiples of kArenaAlignment.
  std::int64_t arena_bytes = 0;
  std::vector<Wait> waits;        // pool
  std::vector<BufferId> access;   // pool of reads, writes and frees
  std::vector<BucketId> buckets;  // that live here, ascending

  std::span<const Wait> waits_of(const Task& t) const {
    return {waits.data() + t.waits.begin, t.waits.count};
  }
  std::span<const BufferId> reads_of(const Task& t) const {
    return {access.data() + t.reads.begin, t.reads.count};
  }
  std::span<const BufferId> writes_of(const Task& t) const {
    return {access.data() + t.writes.begin, t.writes.count};
  }
  std::span<const BufferId> frees_of(const Task& t) const {
    return {access.data() + t.frees.begin, t.frees.count};
  }
  std::span<const Task> tasks_of(const Stream& s) const {
    return {tasks.data() + s.tasks.begin, s.tasks.count};
  }
  const Task& task(TaskId id) const { return tasks[index(id)]; }
  const Buffer& buffer(BufferId id) const { return buffers[index(id)]; }
  bool operator==(const Program&) const = default;
};

// Created before step 0, in the order of their ids on every rank.
struct Communicator {
  enum class Kind : std::uint8_t { point_to_point, collective };
  Kind kind = Kind::collective;
  std::string stream;              // logical stream: one communicator per (group, stream)
  std::uint32_t from = 0, to = 0;  // point_to_point: programs; member i sends to member i
  // collective: its members; with a group size, disjoint groups of that many, one after the other,
  // each on its own
  std::vector<std::uint32_t> ranks;
  std::uint32_t group_size = 0;
  bool operator==(const Communicator&) const = default;
};

struct Plan {
  enum class Kind : std::uint8_t { train, evaluate };
  Kind kind = Kind::train;
  std::uint32_t world = 1;
  std::uint32_t microbatches = 1;
  std::int64_t global_rows = 1;  // G
  std::vector<Chunk> chunks;
  std::vector<Bucket> buckets;
  std::vector<Communicator> communicators;
  std::vector<Program> programs;
  std::vector<Provenance> origins;  // of nodes; by `origin_of_node`
  std::vector<std::uint32_t> origin_of_node;
  std::vector<std::string>
      tag_names;  // by TagId, those that directives added too; empty: the model's

  // The program of a rank and the rank's coordinate in it.
  struct Seat {
    std::uint32_t program = 0, coordinate = 0;
  };
  Seat seat(std::uint32_t rank) const;
  bool operator==(const Plan&) const = default;
};

// Rows of a step. Data-parallel rank `part` of `parts` takes a contiguous block; remainders go to
// the earlier ones. The same rule cuts a block into micro-batches.
struct Rows {
  std::int64_t begin = 0, count = 0;
};
Rows cut_rows(Rows whole, std::uint32_t parts, std::uint32_t part);
// Rows of micro-batch `microbatch` on coordinate `coordinate` of `program`.
Rows rows_of(const Plan& plan, const Program& program, std::uint32_t coordinate,
             std::uint32_t microbatch);

// What a buffer takes on coordinate `coordinate`.
std::int64_t bytes_of(const Plan& plan, const Program& program, std::uint32_t coordinate,
                      const Buffer& buffer);

// What bytes of a rank are for. Values and their gradients, and what autograd keeps, are
// activations, what is being sent among them; received values are communication. The arena's bytes
// are for what it holds when it is fullest.
enum class MemoryKind : std::uint8_t {
  parameter,
  gathered,
  gradient,
  optimizer,
  activation,
  communication,
  workspace
};
inline constexpr std::size_t kMemoryKinds = 7;
std::string_view to_string(MemoryKind kind);

// One line a task; parse(print(p)) gives p again. The hash of the text is the plan's identity.
std::string print(const Plan& plan, const ModelGraph& model);
Expected<Plan> parse_plan(std::string_view text, const ModelGraph& model,
                          const std::string& source);
std::string hash(const Plan& plan,
                 const ModelGraph& model);  // 16 hexadecimal digits, FNV-1a of the text

struct Plans {
  Plan train, evaluate;
  std::vector<std::string> remarks;  // what a user wants to know: how even a partition is
};

}  // namespace piper
