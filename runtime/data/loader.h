// Global batches as tensors, cut into each rank's block.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/data/order.h"

namespace piper {

class Loader {
 public:
  // `global_rows`: G of the job.
  Loader(const ModelGraph& model, std::unique_ptr<RowSource> source, std::int64_t global_rows,
         std::uint64_t seed);

  // Rows block.begin .. of the global batch of a step (from 1), as [block.count, ...] tensors;
  // `inputs` alone.
  Expected<Batch> training(std::int64_t step, Rows block, const std::vector<ValueId>& inputs);
  // Where the first row of the global batch of a step is.
  Location place_of(std::int64_t step);

  // Evaluation passes once over the held-out rows, in order. The last batch is filled up with rows
  // whose labels are not counted, so every held-out row counts once.
  std::int64_t evaluation_batches() const;
  Expected<Batch> evaluation(std::int64_t batch, Rows block,
                             const std::vector<ValueId>& inputs) const;
  // Counted labels of an evaluation batch; a batch without any has no loss.
  std::int64_t evaluation_tokens(std::int64_t batch) const;

  const RowSource& source() const { return *source_; }
  std::vector<ValueId> all_inputs() const;

 private:
  struct Place {
    std::int64_t row = 0;
    bool counted = true;
  };
  Expected<Batch> gather(Part part, const std::vector<Place>& rows,
                         const std::vector<ValueId>& inputs) const;
  std::vector<Place> evaluation_rows(std::int64_t batch, Rows block) const;

  std::vector<Field> fields_;
  std::unique_ptr<RowSource> source_;
  std::int64_t global_rows_;
  RowSequence sequence_;
};

// The inputs that the program of `rank` reads, ascending.
std::vector<ValueId> inputs_of(const Plan& plan, std::uint32_t rank);

// The rows of a global batch that `rank` sees.
Rows block_of(const Plan& plan, std::uint32_t rank);

// Of a whole global batch, what `rank` reads: its block of its inputs. Shares memory.
Batch block_of(const Plan& plan, std::uint32_t rank, const Batch& global);

}  // namespace piper
