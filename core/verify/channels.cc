// plan.unmatched_send, plan.channel_order and plan.collective_order: the two ends of a message, and
// the members of a collective, agree.
#include <algorithm>
#include <string>

#include "core/verify/rules.h"

namespace piper {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;

class Channels {
 public:
  explicit Channels(Report& report) : report_(report), plan_(report.plan) {}

  void run() {
    find_messages();
    if (!report_.ok()) {
      return;
    }
    for (const Message& message : messages_) {
      match(message.place);
    }
    if (report_.ok()) {
      orders();
    }
  }

 private:
  struct Message {
    std::uint32_t communicator;
    bool sends;
    TaskPlace place;
  };

  const Task& task(TaskPlace at) const { return plan_.programs[at.program].tasks[at.task]; }

  void find_messages() {
    place_of_.assign(plan_.origin_of_node.size(), {kNobody, kNobody});
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      const std::vector<Task>& tasks = plan_.programs[p].tasks;
      for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        if (!is_point_to_point(tasks[t].op)) {
          continue;
        }
        const TaskPlace at{p, t};
        TaskPlace& known = place_of_[index(tasks[t].node)];
        if (known.program != kNobody) {
          report_.add("plan.unmatched_send",
                      report_.task(at) + " and " + report_.task(known) +
                          " are the same node, so neither is known to its peer",
                      at);
        }
        known = at;
        messages_.push_back({index(tasks[t].communicator), tasks[t].op == Op::send, at});
      }
    }
  }

  void match(TaskPlace at) {
    const Task& own = task(at);
    const bool sends = own.op == Op::send;
    const auto bad = [&](const std::string& what) {
      report_.add("plan.unmatched_send", report_.task(at) + ' ' + what, at);
    };
    const TaskPlace place = place_of_[index(own.peer)];
    if (place.program == kNobody) {
      bad(std::string("has no ") + (sends ? "receive" : "send"));
      return;
    }
    const Task& peer = task(place);
    if (peer.op == own.op) {
      bad("is paired with " + report_.task(place));
    } else if (peer.peer != own.node) {
      bad("is paired with " + report_.task(place) + ", which is paired with another task");
    } else if (peer.value != own.value || peer.microbatch != own.microbatch ||
               peer.chunk != own.chunk) {
      bad("is paired with " + report_.task(place) + ", which is another value");
    } else if (peer.bytes != own.bytes) {
      bad("is paired with " + report_.task(place) + ", which has another number of bytes");
    } else if (peer.communicator != own.communicator) {
      bad("is paired with " + report_.task(place) + ", which uses communicator " +
          std::to_string(index(peer.communicator)) + " instead of " +
          std::to_string(index(own.communicator)));
    } else {
      const Communicator& channel = plan_.communicators[index(own.communicator)];
      if ((sends ? channel.from : channel.to) != at.program) {
        bad("uses communicator " + std::to_string(index(own.communicator)) +
            ", which goes from program " + std::to_string(channel.from) + " to program " +
            std::to_string(channel.to));
      }
    }
  }

  // Messages were found in the order of streams, so each end of a channel is in order if it has one
  // stream.
  void orders() {
    std::stable_sort(messages_.begin(), messages_.end(), [](const Message& a, const Message& b) {
      return a.communicator != b.communicator ? a.communicator < b.communicator : a.sends > b.sends;
    });
    for (std::size_t begin = 0, end = 0; begin < messages_.size(); begin = end) {
      std::size_t middle = begin;
      while (end < messages_.size() &&
             messages_[end].communicator == messages_[begin].communicator) {
        middle += messages_[end].sends ? 1 : 0;
        ++end;
      }
      one_stream(begin, middle);
      one_stream(middle, end);
      for (std::size_t i = begin, j = middle; i < middle; ++i, ++j) {
        const TaskPlace send = messages_[i].place, recv = messages_[j].place;
        if (task(send).peer != task(recv).node) {
          report_.add("plan.channel_order",
                      report_.task(send) + " is number " + std::to_string(i - begin) +
                          " of its channel, but there its peer expects " +
                          report_.buffer(received(recv)),
                      send);
          break;
        }
      }
    }
  }

  const Buffer& received(TaskPlace recv) const {
    const Program& program = plan_.programs[recv.program];
    return program.buffer(program.writes_of(task(recv))[0]);
  }

  void one_stream(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (task(messages_[i].place).stream != task(messages_[begin].place).stream) {
        report_.add("plan.channel_order",
                    report_.task(messages_[i].place) + " and " +
                        report_.task(messages_[begin].place) +
                        " use one channel on two streams, so nothing says which is first",
                    messages_[i].place);
        return;
      }
    }
  }

  Report& report_;
  const Plan& plan_;
  std::vector<TaskPlace> place_of_;  // by NodeId, of sends and receives
  std::vector<Message> messages_;
};

}  // namespace

void check_channels(Report& report) {
  Channels(report).run();
}

// The launches of each communicator, program after program; within a program in the order of its
// one stream.
void check_collectives(Report& report) {
  const Plan& plan = report.plan;
  std::vector<std::vector<TaskPlace>> launches_of(plan.communicators.size());
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    const std::vector<Task>& tasks = plan.programs[p].tasks;
    for (std::uint32_t t = 0; t < tasks.size() && !report.full(); ++t) {
      if (!valid(tasks[t].communicator) || is_point_to_point(tasks[t].op)) {
        continue;
      }
      std::vector<TaskPlace>& launches = launches_of[index(tasks[t].communicator)];
      if (!launches.empty() && launches.back().program == p &&
          tasks[launches.back().task].stream != tasks[t].stream) {
        report.add("plan.collective_order",
                   report.task({p, t}) + " and " + report.task(launches.back()) +
                       " use one communicator on two streams, so nothing says which is first",
                   {p, t});
      }
      launches.push_back({p, t});
    }
  }
  const std::vector<std::vector<bool>> members = find_members(plan);
  const auto task = [&](TaskPlace at) -> const Task& {
    return plan.programs[at.program].tasks[at.task];
  };
  for (std::uint32_t c = 0; c < launches_of.size() && !report.full(); ++c) {
    const std::vector<TaskPlace>& launches = launches_of[c];
    // The launches of each program, in the order of programs.
    std::vector<std::size_t> begin(plan.programs.size() + 1, 0);
    for (const TaskPlace at : launches) {
      ++begin[at.program + 1];
    }
    std::uint32_t first = kNobody;
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      begin[p + 1] += begin[p];
      if (plan.communicators[c].kind != Communicator::Kind::collective ||
          !members[c][plan.programs[p].ranks[0]]) {
        continue;
      }
      if (first == kNobody) {
        first = p;
        continue;
      }
      const std::size_t expected = begin[first + 1] - begin[first];
      const std::size_t got = begin[p + 1] - begin[p];
      for (std::size_t i = 0; i < std::max(expected, got); ++i) {
        if (i >= expected || i >= got) {
          const TaskPlace at = launches[begin[i >= expected ? p : first] + i];
          report.add("plan.collective_order",
                     report.task(at) + " is launch " + std::to_string(i) + " of communicator " +
                         std::to_string(c) + ", but " +
                         report.ranks(plan.programs[i >= expected ? first : p].ranks) +
                         " make only " + std::to_string(i),
                     at);
          break;
        }
        const TaskPlace a = launches[begin[first] + i], b = launches[begin[p] + i];
        if (task(a).op != task(b).op || task(a).bucket != task(b).bucket ||
            task(a).bytes != task(b).bytes) {
          report.add("plan.collective_order",
                     "launch " + std::to_string(i) + " of communicator " + std::to_string(c) +
                         " is " + report.task(a) + ", but " + report.task(b),
                     b);
          break;
        }
      }
    }
  }
}

}  // namespace piper
