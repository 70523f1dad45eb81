#include "tests/support/symbolic_run.h"

#include <algorithm>
#include <deque>
#include <random>
#include <set>

#include "core/plan/chunk_memory.h"
#include "core/verify/memory.h"
#include "tests/support/symbolic_state.h"

namespace piper::test {
namespace {

// A stream of one rank: its head is waiting, running, or there for the others.
struct Lane {
  std::uint32_t rank = 0, program = 0, coordinate = 0;
  Range tasks;
  std::uint64_t ended = 0;  // over all periods
  enum class State : std::uint8_t { idle, running, arrived } state = State::idle;
  std::uint32_t urgency = 0;  // those of low urgency lag as far behind as they can
};

class Machine {
 public:
  Machine(const Plan& plan, const ModelGraph& model, std::uint32_t seed, std::uint32_t periods)
      : plan_(plan),
        model_(model),
        chunks_(plan, model),
        state_(plan, model),
        periods_(periods),
        random_(seed) {
    lane_of_.resize(plan.world);
    live_.resize(plan.world, 0);
    bound_.resize(plan.world, 0);
    arenas_.resize(plan.world);
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      const Program& program = plan.programs[p];
      for (std::uint32_t i = 0; i < program.ranks.size(); ++i) {
        const std::uint32_t rank = program.ranks[i];
        for (const Stream& stream : program.streams) {
          lane_of_[rank].push_back(static_cast<std::uint32_t>(lanes_.size()));
          Lane& lane = lanes_.emplace_back(Lane{rank, p, i, stream.tasks});
          lane.urgency = random_() % 4;
        }
        bound_[rank] = peak_bytes(plan, model, p, i);
        live_[rank] += program.arena_bytes;
        for (const Buffer& buffer : program.buffers) {
          live_[rank] += buffer.persistent() ? bytes_of(buffer, p, i) : 0;
        }
      }
    }
    queues_.resize(plan.communicators.size());
    for (auto& queue : queues_) {
      queue.resize(plan.world);
    }
    result_.peak = live_;
  }

  SymbolicRun run() {
    while (result_.fault.empty()) {
      std::vector<std::uint32_t> able;
      for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
        if (lanes_[l].state == Lane::State::running || can_start(lanes_[l])) {
          able.push_back(l);
        }
      }
      if (able.empty()) {
        finish();
        break;
      }
      step(lanes_[choose(able)]);
    }
    return std::move(result_);
  }

 private:
  // Mostly one of the most urgent; sometimes any.
  std::uint32_t choose(const std::vector<std::uint32_t>& able) {
    if (random_() % 8 == 0) {
      return able[random_() % able.size()];
    }
    std::uint32_t most = 0;
    for (const std::uint32_t l : able) {
      most = std::max(most, lanes_[l].urgency);
    }
    std::vector<std::uint32_t> urgent;
    std::copy_if(able.begin(), able.end(), std::back_inserter(urgent),
                 [&](std::uint32_t l) { return lanes_[l].urgency == most; });
    return urgent[random_() % urgent.size()];
  }

  Block cut_of(std::uint32_t program, std::uint32_t coordinate, std::uint32_t microbatch) const {
    const auto places = static_cast<std::int64_t>(plan_.programs[program].ranks.size());
    return cut(cut({0, plan_.global_rows}, places, coordinate), plan_.microbatches, microbatch);
  }
  std::int64_t bytes_of(const Buffer& buffer, std::uint32_t program,
                        std::uint32_t coordinate) const {
    const bool has_rows = !valid(buffer.bucket) && !buffer.persistent();
    return buffer.bytes.at(has_rows ? cut_of(program, coordinate, buffer.microbatch).count : 0);
  }

  const Program& program(const Lane& lane) const { return plan_.programs[lane.program]; }
  std::uint32_t head(const Lane& lane) const {
    return lane.tasks.begin + static_cast<std::uint32_t>(lane.ended % lane.tasks.count);
  }
  std::uint64_t period(const Lane& lane) const { return lane.ended / lane.tasks.count; }
  const Task& task(const Lane& lane) const { return program(lane).tasks[head(lane)]; }
  std::string name(const Lane& lane) const {
    return "rank " + std::to_string(lane.rank) + ", task " + std::to_string(head(lane)) + " (" +
           std::string(to_string(task(lane).op)) + ") ";
  }
  void fail(const Lane& lane, const std::string& what) {
    if (result_.fault.empty()) {
      result_.fault = name(lane) + what;
    }
  }

  bool is_at_end(const Lane& lane) const {
    return lane.tasks.count == 0 || lane.ended == std::uint64_t{lane.tasks.count} * periods_;
  }
  bool can_start(const Lane& lane) const {
    if (is_at_end(lane) || lane.state != Lane::State::idle) {
      return false;
    }
    for (const Wait& wait : program(lane).waits_of(task(lane))) {
      if (wait.previous && period(lane) == 0) {
        continue;
      }
      const std::uint64_t in_period = period(lane) - (wait.previous ? 1 : 0);
      const Lane& other = lanes_[lane_of_[lane.rank][index(program(lane).task(wait.task).stream)]];
      const std::uint64_t needed =
          in_period * other.tasks.count + (index(wait.task) - other.tasks.begin) + 1;
      if (other.ended < needed) {
        return false;
      }
    }
    return true;
  }

  void step(Lane& lane) {
    if (lane.state == Lane::State::running) {
      end({&lane});
      return;
    }
    start(lane);
    if (!valid(task(lane).communicator)) {
      lane.state = Lane::State::running;
      return;
    }
    lane.state = Lane::State::arrived;
    queues_[index(task(lane).communicator)][lane.rank].push_back(&lane);
    meet(lane);
  }

  // What the executor does when it launches: buffers come to be, and are used from now on.
  void start(const Lane& lane) {
    const Program& own = program(lane);
    for (std::size_t b = 0; b < own.buffers.size(); ++b) {
      const Buffer& buffer = own.buffers[b];
      if (index(buffer.alloc) != head(lane)) {
        continue;
      }
      Cell& cell = state_.cell(lane.rank, BufferId{static_cast<std::uint32_t>(b)});
      if (cell.is_allocated) {
        return fail(lane, "allocates buffer " + std::to_string(b) + ", which is still there");
      }
      cell = Cell{};
      cell.is_allocated = true;
      cell.is_written = buffer.kind == Buffer::Kind::full_gradient;  // a sum starts as zero
      const std::int64_t bytes = bytes_of(buffer, lane.program, lane.coordinate);
      if (!buffer.in_arena()) {
        live_[lane.rank] += bytes;
        continue;
      }
      if (buffer.offset < 0 || buffer.offset + bytes > own.arena_bytes) {
        return fail(lane, "takes bytes outside the arena");
      }
      for (const auto& [begin, end] : arenas_[lane.rank]) {
        if (begin < buffer.offset + bytes && buffer.offset < end) {
          return fail(lane, "takes bytes of the arena from " + std::to_string(buffer.offset) +
                                ", which are in use");
        }
      }
      arenas_[lane.rank].insert({buffer.offset, buffer.offset + bytes});
    }
    live_[lane.rank] += memory(lane).running;
    note_peak(lane);
    const auto reads = own.reads_of(task(lane)), writes = own.writes_of(task(lane));
    for (const BufferId id : reads) {
      const Cell& cell = state_.cell(lane.rank, id);
      if (!cell.is_allocated || !cell.is_written) {
        return fail(lane, "reads buffer " + std::to_string(index(id)) + ", which is not there");
      }
    }
    for (const BufferId id : writes) {
      if (!state_.cell(lane.rank, id).is_allocated) {
        return fail(lane, "writes buffer " + std::to_string(index(id)) + ", which is not there");
      }
    }
    for (const std::uint32_t l : lane_of_[lane.rank]) {
      if (lanes_[l].state != Lane::State::idle && &lanes_[l] != &lane) {
        conflict(lane, lanes_[l]);
      }
    }
  }

  TaskMemory memory(const Lane& lane) {
    return chunks_.of(program(lane), task(lane), lane.coordinate);
  }

  void note_peak(const Lane& lane) {
    result_.peak[lane.rank] = std::max(result_.peak[lane.rank], live_[lane.rank]);
    if (live_[lane.rank] > bound_[lane.rank]) {
      fail(lane, "needs " + std::to_string(live_[lane.rank]) + " bytes, more than the bound of " +
                     std::to_string(bound_[lane.rank]));
    }
  }

  void conflict(const Lane& a, const Lane& b) {
    const auto meets = [](std::span<const BufferId> x, std::span<const BufferId> y) {
      return std::find_first_of(x.begin(), x.end(), y.begin(), y.end()) != x.end();
    };
    const auto reads_a = program(a).reads_of(task(a)), writes_a = program(a).writes_of(task(a)),
               reads_b = program(b).reads_of(task(b)), writes_b = program(b).writes_of(task(b));
    if (meets(writes_a, writes_b) || meets(writes_a, reads_b) || meets(reads_a, writes_b)) {
      fail(a, "runs at the same time as task " + std::to_string(head(b)) +
                  ", and one of them writes what the other uses");
    }
  }

  // The ranks that this one meets on its communicator, in order; a sender before its receiver.
  std::vector<std::uint32_t> partners(const Lane& lane) {
    const Communicator& communicator = plan_.communicators[index(task(lane).communicator)];
    if (communicator.kind == Communicator::Kind::point_to_point) {
      return {plan_.programs[communicator.from].ranks[lane.coordinate],
              plan_.programs[communicator.to].ranks[lane.coordinate]};
    }
    const std::size_t size =
        communicator.group_size == 0 ? communicator.ranks.size() : communicator.group_size;
    const auto place = std::find(communicator.ranks.begin(), communicator.ranks.end(), lane.rank);
    const auto first = static_cast<std::ptrdiff_t>(
        static_cast<std::size_t>(place - communicator.ranks.begin()) / size * size);
    return {communicator.ranks.begin() + first,
            communicator.ranks.begin() + first + static_cast<std::ptrdiff_t>(size)};
  }

  // Ends the operation if all members are there.
  void meet(Lane& lane) {
    const std::vector<std::uint32_t> ranks = partners(lane);
    if (std::find(ranks.begin(), ranks.end(), lane.rank) == ranks.end()) {
      return fail(lane, "is on a communicator of which its rank is not a member");
    }
    auto& queue = queues_[index(task(lane).communicator)];
    std::vector<Lane*> members;
    for (const std::uint32_t rank : ranks) {
      if (queue[rank].empty()) {
        return;
      }
      members.push_back(queue[rank].front());
    }
    const Task& first = task(*members[0]);
    const bool is_pair = is_point_to_point(first.op);
    if (is_pair && (first.op != Op::send || task(*members[1]).op != Op::recv)) {
      return fail(lane, "meets no counterpart");
    }
    for (const Lane* const member : members) {
      const Task& other = task(*member);
      if (other.bytes != first.bytes || other.bucket != first.bucket ||
          (!is_pair && other.op != first.op) || period(*member) != period(*members[0])) {
        return fail(lane, "meets another operation");
      }
    }
    for (const std::uint32_t rank : ranks) {
      queue[rank].pop_front();
    }
    end(members);
  }

  void end(const std::vector<Lane*>& members) {
    std::vector<Launch> launches;
    for (const Lane* const lane : members) {
      launches.push_back({lane->rank, lane->program, lane->coordinate, &task(*lane),
                          static_cast<std::int64_t>(period(*lane))});
    }
    if (const std::string fault = state_.run(launches); !fault.empty()) {
      return fail(*members[0], fault);
    }
    for (Lane* const lane : members) {
      release(*lane);
      lane->state = Lane::State::idle;
      ++lane->ended;
    }
  }

  void release(const Lane& lane) {
    live_[lane.rank] += memory(lane).after - memory(lane).running;
    for (const BufferId id : program(lane).frees_of(task(lane))) {
      Cell& cell = state_.cell(lane.rank, id);
      const Buffer& buffer = program(lane).buffer(id);
      if (!cell.is_allocated || buffer.persistent()) {
        return fail(lane, "frees buffer " + std::to_string(index(id)) + ", which is not there");
      }
      for (const std::uint32_t l : lane_of_[lane.rank]) {
        if (lanes_[l].state != Lane::State::idle && &lanes_[l] != &lane && uses(lanes_[l], id)) {
          return fail(lane, "frees buffer " + std::to_string(index(id)) + " while task " +
                                std::to_string(head(lanes_[l])) + " uses it");
        }
      }
      cell.is_allocated = cell.is_written = false;
      const std::int64_t bytes = bytes_of(buffer, lane.program, lane.coordinate);
      if (buffer.in_arena()) {
        arenas_[lane.rank].erase({buffer.offset, buffer.offset + bytes});
      } else {
        live_[lane.rank] -= bytes;
      }
    }
  }

  bool uses(const Lane& lane, BufferId id) const {
    const auto has = [&](std::span<const BufferId> list) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    return has(program(lane).reads_of(task(lane))) || has(program(lane).writes_of(task(lane)));
  }

  void finish() {
    for (const Lane& lane : lanes_) {
      if (!is_at_end(lane)) {
        return fail(lane, lane.state == Lane::State::arrived ? "is stuck: the others never come"
                                                             : "is stuck: it waits for ever");
      }
    }
    result_.fault = state_.check_end(periods_);
  }

  const Plan& plan_;
  const ModelGraph& model_;
  ChunkMemory chunks_;
  SymbolicState state_;
  std::uint32_t periods_;
  std::minstd_rand random_;
  std::deque<Lane> lanes_;
  std::vector<std::vector<std::uint32_t>> lane_of_;     // by rank and stream
  std::vector<std::vector<std::deque<Lane*>>> queues_;  // by communicator and rank: who is there
  std::vector<std::int64_t> live_, bound_;              // by rank
  std::vector<std::multiset<std::pair<std::int64_t, std::int64_t>>> arenas_;  // by rank: in use
  SymbolicRun result_;
};

}  // namespace

SymbolicRun run_symbolically(const Plan& plan, const ModelGraph& model, std::uint32_t seed,
                             std::uint32_t periods) {
  return Machine(plan, model, seed, periods).run();
}

}  // namespace piper::test
