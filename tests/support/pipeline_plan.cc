#include "tests/support/pipeline_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/plan_builder.h"
#include "tests/support/toy_model.h"

namespace piper::test {
namespace {

using Kind = Buffer::Kind;

struct Work {
  Op op;
  std::uint32_t chunk, microbatch;
};

struct Draft {
  Task task;
  Uses uses;
};

using BufferKey = std::tuple<Kind, std::uint32_t, std::uint32_t, std::uint32_t>;

// A program before its tasks are added to the builder.
struct Place {
  std::vector<std::string> names;
  std::vector<Stream::Kind> kinds;
  std::vector<std::vector<Draft>> streams;
  std::vector<Buffer> buffers;
  std::int64_t arena = 0;
  std::map<BufferKey, BufferId> known;

  std::uint32_t stream(const std::string& name, Stream::Kind kind) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) {
      return static_cast<std::uint32_t>(found - names.begin());
    }
    names.push_back(name);
    kinds.push_back(kind);
    streams.emplace_back();
    return static_cast<std::uint32_t>(names.size() - 1);
  }
  TaskRef add(std::uint32_t stream, Draft draft) {
    streams[stream].push_back(std::move(draft));
    return {stream, static_cast<std::uint32_t>(streams[stream].size() - 1)};
  }
  Draft& at(TaskRef ref) { return streams[ref.stream][ref.position]; }
  BufferId buffer(Buffer buffer) {
    const BufferKey key{buffer.kind, index(buffer.value), buffer.microbatch,
                        valid(buffer.bucket) ? index(buffer.bucket) : index(buffer.chunk)};
    const auto [entry, is_new] =
        known.try_emplace(key, BufferId{static_cast<std::uint32_t>(buffers.size())});
    if (is_new) {
      buffers.push_back(buffer);
    }
    return entry->second;
  }
};

bool uses(const Draft& draft, BufferId buffer) {
  const auto has = [&](const std::vector<BufferId>& list) {
    return std::find(list.begin(), list.end(), buffer) != list.end();
  };
  return has(draft.uses.reads) || has(draft.uses.writes);
}

bool writes(const Draft& draft, BufferId buffer) {
  const std::vector<BufferId>& list = draft.uses.writes;
  return std::find(list.begin(), list.end(), buffer) != list.end();
}

class Pipeline {
 public:
  explicit Pipeline(const PipelineShape& shape)
      : shape_(shape),
        model_(toy_model({shape.stages, shape.tied, shape.frozen_embedding})),
        builder_(shape.microbatches,
                 std::int64_t{shape.replicas} * shape.microbatches + shape.replicas),
        places_(shape.folded ? shape.stages / 2 : shape.stages) {
    builder_.plan().kind = shape.evaluates ? Plan::Kind::evaluate : Plan::Kind::train;
    builder_.plan().tag_names = model_.tag_names;
    builder_.plan().tag_names.push_back("PP");
  }

  PipelineCase build() {
    make_buckets();
    make_chunks();
    for (std::uint32_t p = 0; p < places_.size(); ++p) {
      fill_compute(p);
    }
    add_messages();
    for (std::uint32_t p = 0; p < places_.size(); ++p) {
      add_scalars(p);
      add_waits(p);
      add_frees(p);
    }
    add_arena();
    for (std::uint32_t p = 0; p < places_.size(); ++p) {
      emit(p);
    }
    Plan plan = builder_.build();
    plan.origins = {{"core", {}}, {"toy", {"job.toml", 7, 1}}};
    plan.origin_of_node.back() = 0;
    for (std::size_t n = 0; n < plan.origin_of_node.size(); ++n) {
      plan.origin_of_node[n] = n % 2;
    }
    return {model_, std::move(plan)};
  }

 private:
  bool trains() const { return !shape_.evaluates; }
  std::uint32_t last_stage() const { return shape_.stages - 1; }
  std::uint32_t place_of(std::uint32_t stage) const {
    const auto places = static_cast<std::uint32_t>(places_.size());
    return stage < places ? stage : 2 * places - 1 - stage;
  }
  Plan& plan() { return builder_.plan(); }

  std::vector<std::uint32_t> ranks(std::uint32_t place) const {
    std::vector<std::uint32_t> list;
    for (std::uint32_t d = 0; d < shape_.replicas; ++d) {
      list.push_back(place * shape_.replicas + d);
    }
    return list;
  }

  // Parameters are embed, the layers, and the head unless tied.
  void make_buckets() {
    const auto add = [this](std::vector<std::uint32_t> parameters,
                            std::vector<std::uint32_t> homes) {
      Bucket bucket;
      for (const std::uint32_t parameter : parameters) {
        bucket.parameters.push_back(ParameterId{parameter});
        bucket.elements += model_.parameters[parameter].elements();
        bucket.frozen = model_.parameters[parameter].frozen;
      }
      std::sort(homes.begin(), homes.end());
      homes.erase(std::unique(homes.begin(), homes.end()), homes.end());
      bucket.tied = homes.size() > 1;
      bucket.homes = std::move(homes);
      plan().buckets.push_back(std::move(bucket));
    };
    // Bucket 0 is the embedding's; bucket 1 + s is stage s's layer, with the head where that is a
    // weight of its own.
    add({0}, shape_.tied ? std::vector<std::uint32_t>{place_of(0), place_of(last_stage())}
                         : std::vector<std::uint32_t>{place_of(0)});
    for (std::uint32_t s = 0; s < shape_.stages; ++s) {
      const bool has_head = s == last_stage() && !shape_.tied;
      add(has_head ? std::vector<std::uint32_t>{1 + s, 2 + s} : std::vector<std::uint32_t>{1 + s},
          {place_of(s)});
    }
  }

  void make_chunks() {
    for (std::uint32_t s = 0; s < shape_.stages; ++s) {
      Chunk chunk;
      chunk.program = place_of(s);
      chunk.tags = {{TagId{1}, s}};
      if (s == 0) {
        chunk.regions.push_back(RegionId{0});
        chunk.buckets.push_back(BucketId{0});
      }
      chunk.regions.push_back(RegionId{1 + s});
      chunk.buckets.push_back(BucketId{1 + s});
      chunk.inputs.push_back(s == 0 ? ValueId{0} : output(s - 1));
      if (s == last_stage()) {
        chunk.regions.push_back(RegionId{2 + s});
        if (shape_.tied && s > 0) {
          chunk.buckets.push_back(BucketId{0});
        }
        chunk.inputs.push_back(model_.labels);
        chunk.has_loss = true;
      } else {
        chunk.outputs.push_back(output(s));
      }
      for (const RegionId region : chunk.regions) {
        chunk.flops = chunk.flops + model_.region(region).flops;
        chunk.saved_bytes = chunk.saved_bytes + model_.region(region).saved_bytes;
      }
      plan().chunks.push_back(std::move(chunk));
    }
  }

  ValueId output(std::uint32_t stage) const { return model_.regions[1 + stage].outputs[0]; }

  std::vector<Work> order(std::uint32_t place) const {
    std::vector<Work> list;
    const auto forward = [&](std::uint32_t s, std::uint32_t m) {
      list.push_back({Op::forward, s, m});
    };
    const auto backward = [&](std::uint32_t s, std::uint32_t m) {
      if (trains()) {
        list.push_back({shape_.split_backward ? Op::backward_input : Op::backward, s, m});
        if (shape_.split_backward) {
          list.push_back({Op::backward_weight, s, m});
        }
      }
    };
    if (shape_.folded) {
      for (const std::uint32_t s : {place, last_stage() - place}) {
        for (std::uint32_t m = 0; m < shape_.microbatches; ++m) {
          forward(s, m);
        }
      }
      for (const std::uint32_t s : {last_stage() - place, place}) {
        for (std::uint32_t m = 0; m < shape_.microbatches; ++m) {
          backward(s, m);
        }
      }
      return list;
    }
    const std::uint32_t ahead = std::min(shape_.microbatches, shape_.stages - place);
    for (std::uint32_t m = 0; m < shape_.microbatches + ahead; ++m) {
      if (m < shape_.microbatches) {
        forward(place, m);
      }
      if (m + 1 >= ahead && m + 1 - ahead < shape_.microbatches) {
        backward(place, m + 1 - ahead);
      }
    }
    return list;
  }

  BufferId value(Place& place, ValueId value, std::uint32_t m) {
    Buffer buffer;
    buffer.kind = model_.value(value).is_input() ? Kind::input : Kind::activation;
    buffer.value = value;
    buffer.microbatch = m;
    buffer.bytes = model_.value(value).bytes();
    return place.buffer(buffer);
  }
  BufferId gradient(Place& place, ValueId value, std::uint32_t m, std::uint32_t consumer) {
    Buffer buffer;
    buffer.kind = Kind::gradient;
    buffer.value = value;
    buffer.microbatch = m;
    buffer.chunk = ChunkId{consumer};
    buffer.bytes = model_.value(value).bytes();
    return place.buffer(buffer);
  }
  BufferId saved(Place& place, std::uint32_t chunk, std::uint32_t m) {
    Buffer buffer;
    buffer.kind = Kind::saved;
    buffer.microbatch = m;
    buffer.chunk = ChunkId{chunk};
    buffer.bytes = plan().chunks[chunk].saved_bytes;
    return place.buffer(buffer);
  }
  BufferId of_bucket(Place& place, Kind kind, BucketId bucket) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.bucket = bucket;
    const Bucket& table = plan().buckets[index(bucket)];
    buffer.bytes = {0, kind == Kind::parameter ? table.bytes() : table.gradient_bytes()};
    return place.buffer(buffer);
  }
  BufferId single(Place& place, Kind kind) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.bytes = {0, 8};
    return place.buffer(buffer);
  }

  bool wants_gradient(std::uint32_t stage) const { return stage < shape_.stages; }

  static void change(Draft& draft, BufferId buffer) {
    draft.uses.reads.push_back(buffer);
    draft.uses.writes.push_back(buffer);
  }

  void fill_compute(std::uint32_t p) {
    Place& place = places_[p];
    const std::uint32_t compute = place.stream("compute", Stream::Kind::compute);
    for (const Work& work : order(p)) {
      const Chunk& chunk = plan().chunks[work.chunk];
      const std::uint32_t m = work.microbatch;
      Draft draft;
      draft.task.op = work.op;
      draft.task.chunk = ChunkId{work.chunk};
      draft.task.microbatch = m;
      std::vector<BufferId>& reads = draft.uses.reads;
      std::vector<BufferId>& writes = draft.uses.writes;
      for (const ValueId input : chunk.inputs) {
        reads.push_back(value(place, input, m));
      }
      if (work.op != Op::backward_weight) {
        for (const BucketId bucket : chunk.buckets) {
          reads.push_back(of_bucket(place, Kind::parameter, bucket));
        }
        for (const ValueId out : chunk.outputs) {
          (work.op == Op::forward ? writes : reads).push_back(value(place, out, m));
        }
      }
      if (work.op == Op::forward) {
        if (trains()) {
          writes.push_back(saved(place, work.chunk, m));
        }
        if (chunk.has_loss) {
          change(draft, single(place, Kind::loss_sum));
        }
      } else {
        reads.push_back(saved(place, work.chunk, m));
        if (work.op != Op::backward_weight) {
          for (const ValueId out : chunk.outputs) {
            reads.push_back(gradient(place, out, m, work.chunk + 1));
          }
          if (chunk.has_loss) {
            reads.push_back(single(place, Kind::token_count));
          }
          if (work.chunk > 0) {
            writes.push_back(gradient(place, chunk.inputs[0], m, work.chunk));
          }
        }
        if (work.op == Op::backward_input) {
          writes.push_back(saved(place, work.chunk, m));
        } else {
          for (const BucketId bucket : chunk.buckets) {
            if (!plan().buckets[index(bucket)].frozen) {
              change(draft, of_bucket(place, Kind::parameter_gradient, bucket));
            }
          }
        }
      }
      place.add(compute, std::move(draft));
    }
  }

  // In the order in which the producer computes them, on both sides.
  void add_messages() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, CommId> channels;
    for (std::uint32_t p = 0; p < places_.size(); ++p) {
      for (const Draft& draft : std::vector<Draft>(places_[p].streams[0])) {
        const std::uint32_t s = index(draft.task.chunk);
        const bool is_forward = draft.task.op == Op::forward;
        if (draft.task.op == Op::backward_weight || (is_forward ? s == last_stage() : s == 0)) {
          continue;
        }
        const std::uint32_t q = place_of(is_forward ? s + 1 : s - 1);
        if (q == p) {
          continue;
        }
        const auto [channel, is_new] = channels.try_emplace({p, q}, CommId{});
        const std::string name = std::to_string(p) + ">" + std::to_string(q);
        if (is_new) {
          channel->second =
              builder_.communicator({Communicator::Kind::point_to_point, name, p, q, {}});
        }
        Draft send, recv;
        send.task.op = Op::send;
        recv.task.op = Op::recv;
        for (Task* task : {&send.task, &recv.task}) {
          task->communicator = channel->second;
          task->microbatch = draft.task.microbatch;
          task->value = is_forward ? output(s) : output(s - 1);
          task->chunk = is_forward ? none<ChunkId>() : ChunkId{s};
          task->bytes = model_.value(task->value).bytes();
          task->node = builder_.node();
        }
        send.task.peer = recv.task.node;
        recv.task.peer = send.task.node;
        const auto buffer = [&](Place& place) {
          return is_forward ? value(place, send.task.value, send.task.microbatch)
                            : gradient(place, send.task.value, send.task.microbatch, s);
        };
        send.uses.reads = {buffer(places_[p])};
        recv.uses.writes = {buffer(places_[q])};
        places_[p].add(places_[p].stream("send " + name, Stream::Kind::communication), send);
        places_[q].add(places_[q].stream("recv " + name, Stream::Kind::communication), recv);
      }
    }
  }

  CommId collective(const std::string& stream, std::vector<std::uint32_t> members) {
    std::sort(members.begin(), members.end());
    for (std::uint32_t c = 0; c < plan().communicators.size(); ++c) {
      const Communicator& known = plan().communicators[c];
      if (known.stream == stream && known.ranks == members) {
        return CommId{c};
      }
    }
    return builder_.communicator({Communicator::Kind::collective, stream, 0, 0, members});
  }
  std::vector<std::uint32_t> everyone() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t p = 0; p < places_.size(); ++p) {
      const std::vector<std::uint32_t> some = ranks(p);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  bool is_home(std::uint32_t p, BucketId bucket) {
    const std::vector<std::uint32_t>& homes = plan().buckets[index(bucket)].homes;
    return std::find(homes.begin(), homes.end(), p) != homes.end();
  }

  void add_scalars(std::uint32_t p) {
    Place& place = places_[p];
    Draft input;
    input.task.op = Op::input;
    for (std::uint32_t b = 0; b < place.buffers.size(); ++b) {
      if (place.buffers[b].kind == Kind::input) {
        input.uses.writes.push_back(BufferId{b});
      }
    }
    if (!input.uses.writes.empty()) {
      place.add(place.stream("input", Stream::Kind::host), input);
    }
    const bool has_loss = place_of(last_stage()) == p;
    const std::uint32_t scalar = place.stream("scalar", Stream::Kind::communication);
    if (has_loss) {
      Draft count;
      count.task.op = Op::token_count;
      count.task.communicator = collective("scalar", ranks(p));
      for (std::uint32_t m = 0; m < shape_.microbatches; ++m) {
        count.uses.reads.push_back(value(place, model_.labels, m));
      }
      count.uses.writes = {single(place, Kind::token_count)};
      place.add(scalar, count);
    }
    if (trains()) {
      add_updates(p, scalar);
    }
    Draft report;
    report.task.op = Op::loss_report;
    const bool on_compute = shape_.report == PipelineShape::Report::compute;
    const bool apart = shape_.report == PipelineShape::Report::scalar_apart;
    report.task.communicator = collective(on_compute ? "compute"
                                          : apart    ? "report"
                                                     : "scalar",
                                          everyone());
    if (has_loss) {
      change(report, single(place, Kind::loss_sum));
      report.uses.reads.push_back(single(place, Kind::token_count));
    }
    const TaskRef reported = place.add(on_compute ? 0 : scalar, report);
    if (!on_compute) {
      place.at({0, 0}).uses.previous.push_back(reported);
    }
  }

  void add_updates(std::uint32_t p, std::uint32_t scalar) {
    Place& place = places_[p];
    Draft norm;
    norm.task.op = Op::grad_norm;
    norm.task.communicator = collective("scalar", everyone());
    norm.uses.writes = {single(place, Kind::grad_norm)};
    std::vector<Draft> updates;
    for (std::uint32_t b = 0; b < plan().buckets.size(); ++b) {
      const BucketId bucket{b};
      if (plan().buckets[b].frozen || !is_home(p, bucket)) {
        continue;
      }
      const BufferId gradient = of_bucket(place, Kind::parameter_gradient, bucket);
      std::vector<std::uint32_t> members;
      for (const std::uint32_t home : plan().buckets[b].homes) {
        const std::vector<std::uint32_t> some = ranks(home);
        members.insert(members.end(), some.begin(), some.end());
      }
      if (members.size() > 1) {
        Draft reduction;
        reduction.task.op = Op::all_reduce;
        reduction.task.bucket = bucket;
        reduction.task.bytes = {0, plan().buckets[b].gradient_bytes()};
        // A stream for each set of members: one order for all of them.
        const std::string name = "reduce " + std::to_string(plan().buckets[b].homes.front()) + "-" +
                                 std::to_string(plan().buckets[b].homes.back());
        reduction.task.communicator = collective(name, members);
        change(reduction, gradient);
        place.add(place.stream(name, Stream::Kind::communication), reduction);
      }
      norm.uses.reads.push_back(gradient);
      Draft update;
      update.task.op = Op::update;
      update.task.bucket = bucket;
      update.uses.reads = {single(place, Kind::grad_norm)};
      for (const Kind kind : {Kind::parameter, Kind::parameter_gradient, Kind::optimizer}) {
        change(update, of_bucket(place, kind, bucket));
      }
      updates.push_back(std::move(update));
    }
    place.add(scalar, norm);
    for (Draft& update : updates) {
      place.add(0, std::move(update));
    }
  }

  // Later on the way of a buffer: written, reduced, read.
  static int rank(const Draft& draft, BufferId buffer, const Place& place) {
    const Kind kind = place.buffers[index(buffer)].kind;
    if (kind == Kind::parameter || kind == Kind::parameter_gradient || kind == Kind::loss_sum) {
      return draft.task.op == Op::all_reduce                                   ? 1
             : draft.task.op == Op::grad_norm                                  ? 2
             : draft.task.op == Op::update || draft.task.op == Op::loss_report ? 3
                                                                               : 0;
    }
    return writes(draft, buffer) ? 0 : 1;
  }

  template <typename Visit>
  void for_each_user(Place& place, BufferId buffer, Visit visit) {
    for (std::uint32_t s = 0; s < place.streams.size(); ++s) {
      for (std::uint32_t i = 0; i < place.streams[s].size(); ++i) {
        if (uses(place.streams[s][i], buffer)) {
          visit(TaskRef{s, i});
        }
      }
    }
  }

  static void wait(Place& place, TaskRef task, TaskRef awaited) {
    std::vector<TaskRef>& waits = place.at(task).uses.waits;
    const bool is_known = std::any_of(waits.begin(), waits.end(), [&](TaskRef known) {
      return known.stream == awaited.stream && known.position == awaited.position;
    });
    if (!is_known && task.stream != awaited.stream) {
      waits.push_back(awaited);
    }
  }

  void add_waits(std::uint32_t p) {
    Place& place = places_[p];
    for (std::uint32_t b = 0; b < place.buffers.size(); ++b) {
      const BufferId buffer{b};
      std::vector<TaskRef> users;
      for_each_user(place, buffer, [&](TaskRef user) { users.push_back(user); });
      for (const TaskRef user : users) {
        for (const TaskRef other : users) {
          if (rank(place.at(other), buffer, place) < rank(place.at(user), buffer, place)) {
            wait(place, user, other);
          }
        }
      }
    }
    // The count of the next step must not be written while this one still reads it.
    const std::uint32_t scalar = place.stream("scalar", Stream::Kind::communication);
    const auto last = static_cast<std::uint32_t>(place.streams[0].size() - 1);
    if (!place.streams[scalar].empty() && place.streams[scalar][0].task.op == Op::token_count) {
      place.streams[scalar][0].uses.previous.push_back({0, last});
    }
  }

  // For the latest of those that it is asked to wait for.
  static void wait_for_step_before(Place& place, TaskRef task, TaskRef awaited) {
    std::vector<TaskRef>& previous = place.at(task).uses.previous;
    if (previous.empty()) {
      previous.push_back(awaited);
    }
    previous[0].position = std::max(previous[0].position, awaited.position);
  }

  // At the last computation that uses it; one that only writes it leaves that to the next.
  void add_frees(std::uint32_t p) {
    Place& place = places_[p];
    for (std::uint32_t b = 0; b < place.buffers.size(); ++b) {
      if (!has_microbatch(place.buffers[b].kind)) {
        continue;
      }
      std::vector<TaskRef> others;
      TaskRef last{0, 0};
      for_each_user(place, BufferId{b}, [&](TaskRef user) {
        if (user.stream != 0) {
          others.push_back(user);
        } else {
          const Draft& draft = place.at(user);
          const bool only_writes = std::find(draft.uses.reads.begin(), draft.uses.reads.end(),
                                             BufferId{b}) == draft.uses.reads.end();
          last.position = std::max(last.position, user.position + (only_writes ? 1 : 0));
        }
      });
      place.at(last).uses.frees.push_back(BufferId{b});
      for (const TaskRef other : others) {
        wait(place, last, other);
        if (place.buffers[b].kind == Kind::input && place.at(other).task.op == Op::input) {
          wait_for_step_before(place, other, last);
        }
      }
      freed_[{p, b}] = last;
    }
  }

  // Message i of a channel has place i modulo their number, and waits for the one that had it
  // before.
  void add_arena() {
    for (std::uint32_t p = 0; p < places_.size(); ++p) {
      Place& place = places_[p];
      for (std::vector<Draft>& stream : place.streams) {
        if (stream.empty() || stream[0].task.op != Op::recv) {
          continue;
        }
        const auto count = static_cast<std::uint32_t>(stream.size());
        const std::uint32_t places =
            shape_.folded ? count : std::min(count, shape_.stages + shape_.spare_places);
        // Of the largest micro-batch.
        const Rows own = cut_rows({0, plan().global_rows}, shape_.replicas, 0);
        const std::int64_t most = cut_rows(own, shape_.microbatches, 0).count;
        const std::int64_t bytes = (stream[0].task.bytes.at(most) + kArenaAlignment - 1) /
                                   kArenaAlignment * kArenaAlignment;
        for (std::uint32_t i = 0; i < count; ++i) {
          const BufferId buffer = stream[i].uses.writes[0];
          place.buffers[index(buffer)].offset = place.arena + i % places * bytes;
          const bool is_first = i < places;
          const std::uint32_t before =
              is_first ? i + (count - 1 - i) / places * places : i - places;
          const TaskRef freed = freed_.at({p, index(stream[before].uses.writes[0])});
          (is_first ? stream[i].uses.previous : stream[i].uses.waits).push_back(freed);
        }
        place.arena += places * bytes;
      }
    }
  }

  void emit(std::uint32_t p) {
    Place& place = places_[p];
    ProgramBuilder& program = builder_.program(ranks(p));
    for (std::uint32_t b = 0; b < plan().buckets.size(); ++b) {
      if (is_home(p, BucketId{b})) {
        of_bucket(place, Kind::parameter, BucketId{b});
        program.holds(BucketId{b});
      }
    }
    program.arena(place.arena);
    for (const Buffer& buffer : place.buffers) {
      program.buffer(buffer);
    }
    for (std::uint32_t s = 0; s < place.streams.size(); ++s) {
      const StreamId stream = program.stream(place.names[s], place.kinds[s]);
      for (const Draft& draft : place.streams[s]) {
        program.task(stream, draft.task, draft.uses);
      }
    }
  }

  PipelineShape shape_;
  ModelGraph model_;
  PlanBuilder builder_;
  std::vector<Place> places_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, TaskRef> freed_;  // program and buffer
};

}  // namespace

PipelineCase pipeline(const PipelineShape& shape) {
  return Pipeline(shape).build();
}

}  // namespace piper::test
