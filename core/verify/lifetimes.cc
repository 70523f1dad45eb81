// plan.release and plan.slot: when buffers come and go.
#include <algorithm>
#include <string>

#include "core/verify/rules.h"

namespace piper {
namespace {

class Release {
 public:
  Release(Report& report, std::uint32_t program, const LocalOrder& order,
          const AccessIndex& accesses)
      : report_(report),
        id_(program),
        program_(report.plan.programs[program]),
        order_(order),
        accesses_(accesses) {}

  void run() {
    std::vector<std::uint32_t> frees(program_.buffers.size(), 0);
    for (std::uint32_t t = 0; t < program_.tasks.size(); ++t) {
      for (const BufferId id : program_.frees_of(program_.tasks[t])) {
        const Buffer& buffer = program_.buffer(id);
        if (buffer.persistent()) {
          bad(t, "frees " + report_.buffer(buffer) + ", which lives as long as the job");
        } else if (++frees[index(id)] > 1) {
          bad(t, "frees " + report_.buffer(buffer) + " a second time");
        } else if (index(buffer.free) != t) {
          bad(t, "frees " + report_.buffer(buffer) + ", which " + task(index(buffer.free)) +
                     " must free");
        }
      }
    }
    for (std::uint32_t b = 0; b < program_.buffers.size() && !report_.full(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (buffer.persistent()) {
        continue;
      }
      if (frees[b] == 0) {
        bad(index(buffer.free), "does not free " + report_.buffer(buffer));
      }
      users(b, buffer);
      next_period(buffer);
    }
  }

 private:
  std::string task(std::uint32_t task) const { return report_.task({id_, task}); }
  void bad(std::uint32_t at, const std::string& message) {
    report_.add("plan.release", task(at) + ' ' + message, {id_, at});
  }

  void users(std::uint32_t id, const Buffer& buffer) {
    const std::uint32_t free = index(buffer.free);
    std::uint32_t last = free;
    for (const AccessIndex::Access use : accesses_.of(id)) {
      if (use.task != free && use.task != last && !order_.before(use.task, free)) {
        report_.add(buffer.kind == Buffer::Kind::gathered ? "plan.materialised" : "plan.release",
                    task(free) + " frees " + report_.buffer(buffer) + " while " + task(use.task) +
                        " may still use it",
                    {id_, free});
        return;
      }
      last = use.task;
    }
  }

  // Of slots: check_slots.
  void next_period(const Buffer& buffer) {
    const std::uint32_t alloc = index(buffer.alloc), free = index(buffer.free);
    if (buffer.slot == Buffer::kNoSlot && !order_.before_next(free, alloc)) {
      bad(alloc, "allocates " + report_.buffer(buffer) +
                     " in the next period while it may still be there: it does not wait for " +
                     task(free));
    }
  }

  Report& report_;
  std::uint32_t id_;
  const Program& program_;
  const LocalOrder& order_;
  const AccessIndex& accesses_;
};

}  // namespace

void check_release(Report& report, std::uint32_t program, const LocalOrder& order,
                   const AccessIndex& accesses) {
  Release(report, program, order, accesses).run();
}

void check_slots(Report& report, std::uint32_t program_id, const LocalOrder& order) {
  const Program& program = report.plan.programs[program_id];
  if (program.slots.empty()) {
    return;
  }
  std::vector<std::uint32_t> rank(program.tasks.size());  // where a task is in the sequence
  for (std::uint32_t i = 0; i < order.sequence().size(); ++i) {
    rank[order.sequence()[i]] = i;
  }
  std::vector<std::uint32_t> users;
  for (std::uint32_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].slot != Buffer::kNoSlot) {
      users.push_back(b);
    }
  }
  const auto alloc = [&](std::uint32_t b) { return index(program.buffers[b].alloc); };
  const auto free = [&](std::uint32_t b) { return index(program.buffers[b].free); };
  std::sort(users.begin(), users.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t slot_a = program.buffers[a].slot, slot_b = program.buffers[b].slot;
    return slot_a != slot_b ? slot_a < slot_b : rank[alloc(a)] < rank[alloc(b)];
  });
  const auto clash = [&](std::uint32_t first, std::uint32_t second, const char* when) {
    report.add("plan.slot",
               report.task({program_id, alloc(second)}) + " puts " +
                   report.buffer(program.buffers[second]) + " into slot " +
                   std::to_string(program.buffers[second].slot) + when + " while " +
                   report.buffer(program.buffers[first]) +
                   " may still be there: it does not wait for " +
                   report.task({program_id, free(first)}),
               {program_id, alloc(second)});
  };
  for (std::size_t begin = 0, end = 0; begin < users.size() && !report.full(); begin = end) {
    const std::uint32_t slot = program.buffers[users[begin]].slot;
    while (end < users.size() && program.buffers[users[end]].slot == slot) {
      const Affine need = program.buffers[users[end]].bytes, have = program.slots[slot].bytes;
      if (need.per_row > have.per_row || need.fixed > have.fixed) {
        report.add("plan.slot", report.buffer(program.buffers[users[end]]) +
                                    " does not fit in slot " + std::to_string(slot) +
                                    " of program " + std::to_string(program_id));
      }
      ++end;
    }
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (!order.before(free(users[i - 1]), alloc(users[i]))) {
        clash(users[i - 1], users[i], "");
      }
    }
    if (!order.before_next(free(users[end - 1]), alloc(users[begin]))) {
      clash(users[end - 1], users[begin], " in the next period");
    }
  }
}

}  // namespace piper
