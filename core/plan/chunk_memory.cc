#include "core/plan/chunk_memory.h"

#include <algorithm>
#include <span>
#include <utility>

namespace piper {
namespace {

bool contains(const std::vector<ValueId>& values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// The regions of one chunk in a row, sizes for a number of rows. Regions are counted from 0; a
// position of -1 is before the chunk, and size() after it.
class Row {
 public:
  Row(const ModelGraph& model, const Chunk& chunk, const std::vector<bool>& wants_gradient,
      std::int64_t rows)
      : model_(model), chunk_(chunk), wants_gradient_(wants_gradient), rows_(rows) {
    for (const RegionId id : chunk.regions) {
      add(model.region(id));
    }
    for (Held& value : values_) {
      value.output = contains(chunk.outputs, value.id);
      value.has_buffer = value.output && !chunk.recompute;
      value.loss = value.id == model.loss;
    }
  }

  // At the forward's worst moment; what it leaves among it.
  std::int64_t forward(bool keeps_graph) const {
    std::int64_t most = 0, left = 0;
    for (int i = 0; i < size(); ++i) {
      std::int64_t live = left;
      for (const Held& value : values_) {
        const bool kept = keeps_graph && value.first_keeper < i;
        if (value.producer >= 0 && value.producer < i &&
            (value.output || value.loss || value.last_reader() >= i || kept)) {
          live += value.bytes;
        }
      }
      const Step& step = steps_[at(i)];
      most = std::max(most, live + (keeps_graph ? step.forward : step.evaluate));
      left += keeps_graph ? step.saved : 0;
    }
    return most;
  }

  // What the forward leaves beside values with a buffer.
  std::int64_t saved() const {
    std::int64_t bytes = 0;
    for (const Step& step : steps_) {
      bytes += step.saved;
    }
    for (const Held& value : values_) {
      bytes += value.inside() && value.first_keeper < size() ? value.bytes : 0;
    }
    return bytes;
  }

  std::int64_t backward() const {
    std::int64_t most = 0;
    for (int i = size() - 1; i >= 0; --i) {
      most = std::max(most, saved_before(i) + kept_until(i, /*split=*/false) + gradients(i) +
                                steps_[at(i)].backward);
    }
    return most;
  }

  std::int64_t backward_input() const {
    std::int64_t most = pending() + input_gradients(), done = 0;
    for (int i = size() - 1; i >= 0; --i) {
      const Step& step = steps_[at(i)];
      if (step.has_input_pass) {
        most = std::max(most, saved_before(i) + kept_until(i, /*split=*/true) + gradients(i) +
                                  step.backward_input + done);
      }
      done += step.pending - step.arrived;
    }
    return most;
  }

  // What backward_input leaves.
  std::int64_t pending() const {
    std::int64_t bytes = 0;
    for (const Step& step : steps_) {
      bytes += step.pending;
    }
    for (const Held& value : values_) {
      bytes += value.producer >= 0 && value.awaited ? value.bytes : 0;
    }
    return bytes;
  }

  std::int64_t backward_weight() const {
    const std::int64_t all = pending();
    std::int64_t most = all;
    for (const Step& step : steps_) {
      most = std::max(most, all - step.pending + step.backward_weight);
    }
    return most;
  }

  std::int64_t outputs() const {
    std::int64_t bytes = 0;
    for (const Held& value : values_) {
      bytes += value.output && !value.loss ? value.bytes : 0;
    }
    return bytes;
  }
  std::int64_t input_gradients() const {
    std::int64_t bytes = 0;
    for (const Held& value : values_) {
      bytes += value.producer < 0 && value.wanted ? value.bytes : 0;
    }
    return bytes;
  }
  std::int64_t loss() const {
    return chunk_.has_loss && wants_gradient_[index(model_.loss)] ? bytes(model_.loss) : 0;
  }
  std::int64_t bytes(ValueId value) const { return model_.value(value).bytes().at(rows_); }

 private:
  // Values that its graph keeps do not count, nor gradients of its results.
  struct Step {
    std::int64_t saved, pending;
    std::int64_t arrived;  // of what is pending, gradients that came from other chunks
    std::int64_t evaluate, forward, backward, backward_input, backward_weight;
    bool has_input_pass;
  };
  struct Held {
    ValueId id;
    std::int64_t bytes;
    int producer;      // -1: an input of the chunk
    int first_keeper;  // the first region whose graph keeps it; size(): none
    bool awaited;      // something keeps it until backward_weight
    bool wanted;       // has a gradient
    std::vector<int> readers;
    bool output = false, loss = false;
    bool has_buffer = false;  // an output that lives until the backward

    bool inside() const { return producer >= 0 && !has_buffer; }
    int last_reader() const { return readers.empty() ? -1 : readers.back(); }
  };

  int size() const { return static_cast<int>(chunk_.regions.size()); }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  std::int64_t sum(const std::vector<ValueId>& values) const {
    std::int64_t all = 0;
    for (const ValueId value : values) {
      all += bytes(value);
    }
    return all;
  }
  std::int64_t sum_of_wanted(const std::vector<ValueId>& values) const {
    std::int64_t all = 0;
    for (const ValueId value : values) {
      all += wants_gradient_[index(value)] ? bytes(value) : 0;
    }
    return all;
  }

  Held& held(ValueId id, int producer) {
    const auto known = std::find_if(values_.begin(), values_.end(),
                                    [&](const Held& value) { return value.id == id; });
    if (known != values_.end()) {
      return *known;
    }
    return values_.emplace_back(Held{id,
                                     bytes(id),
                                     producer,
                                     size(),
                                     false,
                                     wants_gradient_[index(id)] && !model_.value(id).is_input(),
                                     {}});
  }

  void add(const Region& region) {
    const int position = static_cast<int>(steps_.size());
    for (const ValueId value : region.inputs) {
      held(value, -1).readers.push_back(position);
    }
    for (const ValueId value : region.outputs) {
      held(value, position);
    }
    for (const ValueId value : region.saved_values) {
      int& first = held(value, -1).first_keeper;
      first = std::min(first, position);
    }

    Step step{};
    step.saved = region.saved_bytes.at(rows_) - sum(region.saved_values);
    const std::int64_t arriving = sum_of_wanted(region.outputs);
    // The runtime's BI also goes through regions whose inputs want no gradient, where BW would read
    // parameters otherwise.
    step.has_input_pass =
        sum_of_wanted(region.inputs) > 0 ||
        (arriving > 0 && region.peaks && !region.peaks->backward_input.of.empty());
    step.pending = step.has_input_pass ? region.pending_bytes.at(rows_) - sum(region.pending_values)
                   : arriving > 0      ? step.saved + arriving
                                       : 0;
    std::vector<ValueId> gradients = region.pending_gradients;
    if (!step.has_input_pass) {
      gradients = region.outputs;
    }
    for (const ValueId value : gradients) {
      if (wants_gradient_[index(value)] && contains(chunk_.outputs, value)) {
        step.arrived += bytes(value);
      }
    }
    for (const ValueId value : step.has_input_pass ? region.pending_values : region.saved_values) {
      held(value, -1).awaited = true;
    }
    if (region.peaks) {
      step.evaluate = region.peaks->evaluate.at(rows_);
      step.forward = region.peaks->forward.at(rows_);
      step.backward = region.peaks->backward.at(rows_);
      step.backward_input = region.peaks->backward_input.at(rows_);
      step.backward_weight =
          step.has_input_pass ? region.peaks->backward_weight.at(rows_) : step.backward + arriving;
    } else {
      estimate(step, region);
    }
    const std::int64_t workspace = region.workspace_bytes(rows_);
    for (std::int64_t* const pass : {&step.evaluate, &step.forward, &step.backward,
                                     &step.backward_input, &step.backward_weight}) {
      *pass += workspace;
    }
    steps_.push_back(step);
  }

  // Of a model graph without op-level liveness.
  void estimate(Step& step, const Region& region) const {
    const std::int64_t transient = region.transient_bytes.at(rows_);
    step.evaluate = sum(region.outputs) + transient;
    step.forward = step.saved + step.evaluate;
    step.backward = step.saved + sum_of_wanted(region.inputs) + transient;
    step.backward_input = step.backward + std::max<std::int64_t>(0, step.pending - step.saved);
    step.backward_weight = step.pending + transient;
  }

  std::int64_t saved_before(int i) const {
    std::int64_t bytes = 0;
    for (int j = 0; j < i; ++j) {
      bytes += steps_[at(j)].saved;
    }
    return bytes;
  }

  // Values between regions that are there while the backward is at region i.
  std::int64_t kept_until(int i, bool split) const {
    std::int64_t bytes = 0;
    for (const Held& value : values_) {
      const bool kept = value.first_keeper <= i || (split && value.awaited);
      bytes += value.inside() && kept ? value.bytes : 0;
    }
    return bytes;
  }

  // While the backward is at region i: gradients that later regions have computed and earlier ones,
  // or i, will read; and the sum where region i adds one.
  std::int64_t gradients(int i) const {
    std::int64_t bytes = 0;
    for (const Held& value : values_) {
      if (!value.wanted || value.producer > i) {
        continue;
      }
      const bool computed = value.last_reader() > i;
      const bool reads =
          std::find(value.readers.begin(), value.readers.end(), i) != value.readers.end();
      bytes += computed ? value.bytes : 0;
      bytes += reads && (computed || value.output) ? value.bytes : 0;
    }
    return bytes;
  }

  const ModelGraph& model_;
  const Chunk& chunk_;
  const std::vector<bool>& wants_gradient_;
  std::int64_t rows_;
  std::vector<Step> steps_;
  std::vector<Held> values_;
};

}  // namespace

Affine saved_bytes(const ModelGraph& model, const Chunk& chunk) {
  Affine bytes;
  std::vector<ValueId> counted = chunk.inputs;
  if (!chunk.recompute) {
    counted.insert(counted.end(), chunk.outputs.begin(), chunk.outputs.end());
  }
  const auto subtract = [&](ValueId value) {
    const Affine size = model.value(value).bytes();
    bytes = bytes + Affine{-size.per_row, -size.fixed};
  };
  for (const RegionId id : chunk.regions) {
    const Region& region = model.region(id);
    bytes = bytes + region.saved_bytes;
    for (const ValueId value : region.saved_values) {
      contains(counted, value) ? subtract(value) : counted.push_back(value);
    }
  }
  return bytes;
}

ChunkMemory::ChunkMemory(const Plan& plan, const ModelGraph& model)
    : plan_(plan), model_(model), wants_gradient_(values_with_gradient(model)) {}

TaskMemory ChunkMemory::of(const Program& program, const Task& task, std::uint32_t coordinate) {
  if (!valid(task.chunk) || !runs_chunk(task.op)) {
    return {};
  }
  const Chunk& chunk = plan_.chunks[index(task.chunk)];
  const std::int64_t rows = rows_of(plan_, program, coordinate, task.microbatch).count;
  std::vector<std::uint32_t> arriving(chunk.outputs.size());
  if (task.op == Op::backward || task.op == Op::backward_input) {
    for (const BufferId id : program.reads_of(task)) {
      const Buffer& buffer = program.buffer(id);
      for (std::size_t i = 0; i < chunk.outputs.size(); ++i) {
        arriving[i] +=
            buffer.value == chunk.outputs[i] && (buffer.kind == Buffer::Kind::gradient ||
                                                 buffer.kind == Buffer::Kind::routed_gradient)
                ? 1
                : 0;
      }
    }
  }
  const std::span<const BufferId> writes = program.writes_of(task);
  const bool keeps_graph = std::any_of(writes.begin(), writes.end(), [&](BufferId id) {
    return program.buffer(id).kind == Buffer::Kind::saved;
  });
  const auto [entry, fresh] =
      known_.try_emplace(std::tuple{task.chunk, task.op, rows, std::move(arriving)});
  TaskMemory& memory = entry->second;
  if (!fresh) {
    return memory;
  }

  const Row row(model_, chunk, wants_gradient_, rows);
  std::int64_t sums = 0;  // of several gradients of one output, while the task runs
  for (std::size_t i = 0; i < chunk.outputs.size(); ++i) {
    sums += std::get<3>(entry->first)[i] > 1 ? row.bytes(chunk.outputs[i]) : 0;
  }
  if (task.op == Op::forward) {
    memory.running = row.forward(keeps_graph) - row.outputs() - (keeps_graph ? row.saved() : 0);
    memory.after = keeps_graph ? row.loss() : 0;
  } else if (task.op == Op::recompute) {
    memory.running = row.forward(true) - row.saved();
    memory.after = row.loss();
  } else if (task.op == Op::backward) {
    memory.running = row.backward() + sums - row.saved() - row.input_gradients();
    memory.after = -row.loss();
  } else if (task.op == Op::backward_input) {
    memory.running = row.backward_input() + sums - row.saved() - row.input_gradients();
    memory.after = row.pending() - row.saved() - row.loss();
  } else {
    PIPER_CHECK(task.op == Op::backward_weight, "a pass over a chunk with no memory of its own");
    memory.running = row.backward_weight() - row.pending();
    memory.after = row.saved() - row.pending();
  }
  memory.running *= chunk.expert_parts;
  memory.after *= chunk.expert_parts;
  return memory;
}

}  // namespace piper
