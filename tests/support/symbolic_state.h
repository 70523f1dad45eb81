// What the buffers of every rank hold in a symbolic run, and what each task does to them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/plan/plan.h"
#include "tests/support/symbolic_step.h"

namespace piper::test {

// One buffer of one rank.
struct Cell {
  bool is_allocated = false, is_written = false;
  // Values and gradients, by member of the expert group whose rows they are; one outside experts.
  std::vector<Sum> sums;
  int part = -1;  // of experts: which block of them made it, or sees it
  // Parameters and optimizers: the version of each shard that is there; `shard`: the only one that
  // is, and of a gradient the one that it is of.
  std::vector<std::int64_t> versions;
  int shard = -1;
  bool has_pending_update = false;  // of whichever shard the next gather takes from here
  std::vector<std::uint32_t> from;  // gathered: whose shards
  // Between forward and backward: by source, the forward and backward of each region.
  std::vector<std::vector<Symbol>> forwards;
  std::vector<std::vector<Sum>> backwards;  // empty sums: no backward
};

// A task as one rank runs it.
struct Launch {
  std::uint32_t rank = 0, program = 0, coordinate = 0;
  const Task* task = nullptr;
  std::int64_t period = 0;
};

class SymbolicState {
 public:
  SymbolicState(const Plan& plan, const ModelGraph& model);

  Cell& cell(std::uint32_t rank, BufferId buffer) { return cells_[rank][index(buffer)]; }

  // The effect of an operation on all its members (in the order of the group; a send before its
  // receive). Returns what is wrong, or "".
  std::string run(const std::vector<Launch>& members);
  std::string check_end(std::int64_t periods);

 private:
  struct Fault {
    std::string text;
  };

  const Program& program(const Launch& l) const { return plan_.programs[l.program]; }
  Cell& written(const Launch& l, BufferId id);
  // The first of the buffers that is of this kind, and of this value or bucket where given.
  Cell* find(const Launch& l, bool among_writes, Buffer::Kind kind, ValueId value, BucketId bucket);
  Cell* parameter_of(const Launch& l, BucketId bucket);
  Cell* activation(const Launch& l, bool among_writes, ValueId value);

  void forward(const Launch& l);
  void recompute(const Launch& l);
  void backward(const Launch& l);
  void backward_weight(const Launch& l);
  struct Inputs {
    std::vector<std::vector<Sum>> values;  // by source: by ValueId
    int part = -1;
    std::size_t sources = 1;
  };
  Inputs inputs(const Launch& l);
  std::vector<std::int64_t> versions(const Launch& l, RegionId region, int part);
  std::vector<Symbol> evaluate(const Launch& l, Inputs& in, std::size_t source);
  void contribute(const Launch& l, const Cell& saved, int part);
  void note_part(const Launch& l, Cell& parameter, BucketId bucket, int part);
  bool is_own(RegionId region, std::size_t parameter, const Chunk& chunk, int part) const;

  void message(const Launch& send, const Launch& recv);
  void all_to_all(const std::vector<Launch>& members);
  void all_reduce(const std::vector<Launch>& members);
  void reduce_scatter(const std::vector<Launch>& members);
  void all_gather(const std::vector<Launch>& members);
  void token_count(const std::vector<Launch>& members);
  void grad_norm(const std::vector<Launch>& members);
  void loss_report(const std::vector<Launch>& members);
  void update(const Launch& l);
  void deliver(const Launch& l);
  Sum expected_gradient(BucketId bucket, int part, std::int64_t step);

  const Plan& plan_;
  const ModelGraph& model_;
  RegionRules rules_;
  std::unique_ptr<OneDeviceStep> one_device_;
  std::vector<BucketId> bucket_of_;       // by ParameterId
  std::vector<std::vector<Cell>> cells_;  // by rank, by buffer
  std::vector<std::int64_t> reported_;    // by rank: losses that were right
  // Of chunks that are recomputed, by rank, chunk and micro-batch, and source: what the last
  // forward computed.
  std::map<std::tuple<std::uint32_t, ChunkId, std::uint32_t>, std::vector<std::vector<Symbol>>>
      computed_;
};

}  // namespace piper::test
