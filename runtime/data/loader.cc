#include "runtime/data/loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <set>

#include "runtime/model/build.h"

namespace piper {

Loader::Loader(const ModelGraph& model, std::unique_ptr<RowSource> source, std::int64_t global_rows,
               std::uint64_t seed)
    : fields_(fields_of(model)),
      source_(std::move(source)),
      global_rows_(global_rows),
      sequence_(source_->rows(Part::training), seed) {}

Expected<Batch> Loader::gather(Part part, const std::vector<Place>& rows,
                               const std::vector<ValueId>& inputs) const {
  Batch batch;
  for (const Field& field : fields_) {
    if (std::find(inputs.begin(), inputs.end(), field.value) == inputs.end()) {
      continue;
    }
    std::vector<std::int64_t> shape = {static_cast<std::int64_t>(rows.size())};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    at::Tensor tensor = at::empty(shape, to_torch(field.dtype));
    auto* to = static_cast<std::byte*>(tensor.mutable_data_ptr());
    for (const Place& place : rows) {
      PIPER_TRY(source_->read(part, place.row, field, to));
      if (field.labels && !place.counted) {
        std::fill_n(reinterpret_cast<std::int64_t*>(to), field.elements(), kIgnoredLabel);
      }
      to += field.bytes();
    }
    batch.emplace(field.value, std::move(tensor));
  }
  return batch;
}

Expected<Batch> Loader::training(std::int64_t step, Rows block,
                                 const std::vector<ValueId>& inputs) {
  std::vector<Place> rows;
  for (std::int64_t i = 0; i < block.count; ++i) {
    rows.push_back({sequence_.at((step - 1) * global_rows_ + block.begin + i), true});
  }
  return gather(Part::training, rows, inputs);
}

Location Loader::place_of(std::int64_t step) {
  return source_->place_of(Part::training, sequence_.at((step - 1) * global_rows_));
}

std::int64_t Loader::evaluation_batches() const {
  return (source_->rows(Part::held_out) + global_rows_ - 1) / global_rows_;
}

std::vector<Loader::Place> Loader::evaluation_rows(std::int64_t batch, Rows block) const {
  const std::int64_t last = source_->rows(Part::held_out) - 1;
  std::vector<Place> rows;
  for (std::int64_t i = 0; i < block.count; ++i) {
    const std::int64_t row = batch * global_rows_ + block.begin + i;
    rows.push_back({std::min(row, last), row <= last});
  }
  return rows;
}

Expected<Batch> Loader::evaluation(std::int64_t batch, Rows block,
                                   const std::vector<ValueId>& inputs) const {
  return gather(Part::held_out, evaluation_rows(batch, block), inputs);
}

std::int64_t Loader::evaluation_tokens(std::int64_t batch) const {
  std::int64_t counted = 0;
  for (const Place& place : evaluation_rows(batch, {0, global_rows_})) {
    counted += place.counted ? source_->counted_labels(Part::held_out, place.row) : 0;
  }
  return counted;
}

std::vector<ValueId> Loader::all_inputs() const {
  std::vector<ValueId> inputs;
  for (const Field& field : fields_) {
    inputs.push_back(field.value);
  }
  return inputs;
}

std::vector<ValueId> inputs_of(const Plan& plan, std::uint32_t rank) {
  std::set<ValueId> inputs;
  for (const Buffer& buffer : plan.programs[plan.seat(rank).program].buffers) {
    if (buffer.kind == Buffer::Kind::input) {
      inputs.insert(buffer.value);
    }
  }
  return {inputs.begin(), inputs.end()};
}

Rows block_of(const Plan& plan, std::uint32_t rank) {
  const Plan::Seat seat = plan.seat(rank);
  const auto parts = static_cast<std::uint32_t>(plan.programs[seat.program].ranks.size());
  return cut_rows({0, plan.global_rows}, parts, seat.coordinate);
}

Batch block_of(const Plan& plan, std::uint32_t rank, const Batch& global) {
  const Rows block = block_of(plan, rank);
  Batch batch;
  for (const ValueId id : inputs_of(plan, rank)) {
    batch.emplace(id, global.at(id).narrow(0, block.begin, block.count));
  }
  return batch;
}

}  // namespace piper
