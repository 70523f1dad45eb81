#include "core/lower/list_schedule.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace piper {
namespace {

// Work that is ready, most urgent first: the longest path to the end, then the smaller id.
struct Ready {
  std::uint64_t priority;
  std::uint32_t op;
  bool operator<(const Ready& other) const {
    return priority != other.priority ? priority < other.priority : op > other.op;
  }
};

struct Finished {
  std::uint64_t time;
  std::uint32_t op;
  bool operator<(const Finished& other) const {
    return time != other.time ? time > other.time : op > other.op;
  }
};

class Scheduler {
 public:
  Scheduler(const Dag& dag, const std::vector<Edge>& extra, const Costs& costs)
      : dag_(dag), costs_(costs), op_of_(operations(dag)) {
    number_streams();
    connect(extra);
  }

  std::optional<Timeline> run() {
    if (!find_priorities()) {
      return std::nullopt;
    }
    simulate();
    return std::move(timeline_);
  }

 private:
  void number_streams() {
    stream_base_.push_back(0);
    for (const DagProgram& program : dag_.programs) {
      stream_base_.push_back(stream_base_.back() +
                             static_cast<std::uint32_t>(program.streams.size()));
    }
  }

  void connect(const std::vector<Edge>& extra) {
    const std::size_t nodes = dag_.nodes.size();
    first_.assign(nodes + 1, 0);
    waiting_for_.assign(nodes, 0);
    const auto count = [&](const Edge& edge) { ++first_[op_of_[index(edge.from)] + 1]; };
    std::for_each(dag_.edges.begin(), dag_.edges.end(), count);
    std::for_each(extra.begin(), extra.end(), count);
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    next_.resize(first_.back());
    std::vector<std::uint32_t> fill(first_.begin(), first_.end() - 1);
    const auto place = [&](const Edge& edge) {
      const std::uint32_t to = op_of_[index(edge.to)];
      next_[fill[op_of_[index(edge.from)]]++] = to;
      ++waiting_for_[to];
    };
    std::for_each(dag_.edges.begin(), dag_.edges.end(), place);
    std::for_each(extra.begin(), extra.end(), place);
  }

  std::uint64_t cost_of(std::uint32_t op) const {
    const Node& node = dag_.nodes[op];
    return costs_.of(node.op, node.chunk, node.value, node.bucket, node.communicator);
  }

  bool is_op(std::uint32_t n) const { return op_of_[n] == n; }

  // False where the edges have a cycle.
  bool find_priorities() {
    const auto nodes = static_cast<std::uint32_t>(dag_.nodes.size());
    std::vector<std::uint32_t> left = waiting_for_, sorted;
    sorted.reserve(nodes);
    std::uint32_t ops = 0;
    for (std::uint32_t n = 0; n < nodes; ++n) {
      ops += is_op(n) ? 1 : 0;
      if (is_op(n) && left[n] == 0) {
        sorted.push_back(n);
      }
    }
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      for (std::uint32_t e = first_[sorted[i]]; e < first_[sorted[i] + 1]; ++e) {
        if (--left[next_[e]] == 0) {
          sorted.push_back(next_[e]);
        }
      }
    }
    if (sorted.size() != ops) {
      return false;
    }
    priority_.assign(nodes, 0);
    for (auto op = sorted.rbegin(); op != sorted.rend(); ++op) {
      std::uint64_t longest = 0;
      for (std::uint32_t e = first_[*op]; e < first_[*op + 1]; ++e) {
        longest = std::max(longest, priority_[next_[e]]);
      }
      priority_[*op] = longest + cost_of(*op);
    }
    return true;
  }

  std::uint32_t stream_of(std::uint32_t n) const {
    return stream_base_[dag_.nodes[n].program] + dag_.nodes[n].stream;
  }

  template <typename F>
  void for_each_member(std::uint32_t op, F&& f) const {
    std::uint32_t n = op;
    do {
      f(n);
      n = valid(dag_.nodes[n].peer) ? index(dag_.nodes[n].peer) : n;
    } while (n != op);
  }

  std::uint32_t busy_stream(std::uint32_t op) const {
    std::uint32_t found = kFree;
    for_each_member(op, [&](std::uint32_t n) {
      if (found == kFree && busy_[stream_of(n)]) {
        found = stream_of(n);
      }
    });
    return found;
  }

  void start(std::uint32_t op) {
    const std::uint64_t end = now_ + cost_of(op);
    for_each_member(op, [&](std::uint32_t n) {
      const Node& node = dag_.nodes[n];
      busy_[stream_of(n)] = true;
      timeline_.start[n] = now_;
      timeline_.end[n] = end;
      timeline_.order[node.program][node.stream].push_back(NodeId{n});
    });
    running_.push({end, op});
  }

  void make_ready(std::uint32_t op) {
    const std::uint32_t stream = stream_of(op);
    ready_[stream].push({priority_[op], op});
    touched_.push_back(stream);
  }

  // Starts what can start on the streams that became free or got work. What needs a further stream
  // that is busy waits there.
  void start_ready() {
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint32_t stream : touched_) {
      while (!busy_[stream] && !ready_[stream].empty()) {
        const Ready top = ready_[stream].top();
        ready_[stream].pop();
        if (const std::uint32_t other = busy_stream(top.op); other != kFree) {
          ready_[other].push(top);
        } else {
          start(top.op);
        }
      }
    }
    touched_.clear();
  }

  void simulate() {
    const auto nodes = static_cast<std::uint32_t>(dag_.nodes.size());
    timeline_.start.assign(nodes, 0);
    timeline_.end.assign(nodes, 0);
    for (const DagProgram& program : dag_.programs) {
      timeline_.order.emplace_back(program.streams.size());
    }
    busy_.assign(stream_base_.back(), false);
    ready_.resize(stream_base_.back());
    for (std::uint32_t n = 0; n < nodes; ++n) {
      if (is_op(n) && waiting_for_[n] == 0) {
        make_ready(n);
      }
    }
    start_ready();
    while (!running_.empty()) {
      now_ = running_.top().time;
      while (!running_.empty() && running_.top().time == now_) {
        const std::uint32_t op = running_.top().op;
        running_.pop();
        for_each_member(op, [&](std::uint32_t n) {
          busy_[stream_of(n)] = false;
          touched_.push_back(stream_of(n));
        });
        for (std::uint32_t e = first_[op]; e < first_[op + 1]; ++e) {
          if (--waiting_for_[next_[e]] == 0) {
            make_ready(next_[e]);
          }
        }
      }
      start_ready();
    }
  }

  static constexpr std::uint32_t kFree = 0xffffffff;

  const Dag& dag_;
  const Costs& costs_;
  const std::vector<std::uint32_t> op_of_;         // by node
  std::vector<std::uint32_t> stream_base_;         // by program: its first stream's number
  std::vector<std::uint32_t> first_, next_;        // by operation: successors
  std::vector<std::uint32_t> waiting_for_;         // by operation
  std::vector<std::uint64_t> priority_;            // by operation
  std::vector<bool> busy_;                         // by stream
  std::vector<std::priority_queue<Ready>> ready_;  // by stream
  std::vector<std::uint32_t> touched_;
  std::priority_queue<Finished> running_;
  std::uint64_t now_ = 0;
  Timeline timeline_;
};

}  // namespace

std::vector<std::uint32_t> operations(const Dag& dag) {
  const auto nodes = static_cast<std::uint32_t>(dag.nodes.size());
  std::vector<std::uint32_t> smallest(nodes);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    smallest[n] = n;
    for (NodeId peer = dag.nodes[n].peer; valid(peer) && index(peer) != n;
         peer = dag.node(peer).peer) {
      smallest[n] = std::min(smallest[n], index(peer));
    }
  }
  return smallest;
}

std::optional<Timeline> list_schedule(const Dag& dag, const std::vector<Edge>& extra,
                                      const Costs& costs) {
  return Scheduler(dag, extra, costs).run();
}

}  // namespace piper
