// plan.release: when buffers come and go.
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

  // In the arena: check_arena.
  void next_period(const Buffer& buffer) {
    const std::uint32_t alloc = index(buffer.alloc), free = index(buffer.free);
    if (!buffer.in_arena() && !order_.before_next(free, alloc)) {
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

}  // namespace piper
