// plan.arena: who shares bytes of the arena.
#include <algorithm>
#include <string>
#include <vector>

#include "core/plan/occupants.h"
#include "core/verify/rules.h"

namespace piper {
namespace {

class Arena {
 public:
  Arena(Report& report, std::uint32_t program, const LocalOrder& order)
      : report_(report),
        id_(program),
        program_(report.plan.programs[program]),
        order_(order),
        end_(program_.buffers.size(), 0) {}

  void run() {
    const std::size_t errors = report_.count();
    for (std::uint32_t b = 0; b < program_.buffers.size(); ++b) {
      if (program_.buffers[b].in_arena()) {
        fits(b);
        users_.push_back(BufferId{b});
      }
    }
    if (report_.count() == errors) {
      sort_by_alloc();
      share();
    }
  }

 private:
  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }
  std::string named(BufferId id) const { return report_.buffer(buffer(id)); }

  // On the first coordinate, which has as many rows as any in each micro-batch.
  void fits(std::uint32_t b) {
    const Buffer& own = program_.buffers[b];
    const std::int64_t bytes = bytes_of(report_.plan, program_, 0, own);
    if (own.offset < 0 || bytes < 0 || bytes > program_.arena_bytes ||
        own.offset > program_.arena_bytes - bytes) {
      bad(report_.buffer(own) + " at " + std::to_string(own.offset) + " does not fit in the " +
          std::to_string(program_.arena_bytes) + " bytes of the arena of program " +
          std::to_string(id_));
    } else if (own.offset % kArenaAlignment != 0) {
      bad(report_.buffer(own) + " begins at " + std::to_string(own.offset) +
          " of the arena of program " + std::to_string(id_) + ", expected a multiple of " +
          std::to_string(kArenaAlignment));
    }
    end_[b] = own.offset + bytes;
  }

  void sort_by_alloc() {
    std::vector<std::uint32_t> place(program_.tasks.size());  // of a task in the sequence
    for (std::uint32_t i = 0; i < order_.sequence().size(); ++i) {
      place[order_.sequence()[i]] = i;
    }
    std::stable_sort(users_.begin(), users_.end(), [&](BufferId a, BufferId b) {
      return place[index(buffer(a).alloc)] < place[index(buffer(b).alloc)];
    });
  }

  // Each byte's users, in the order of their allocs, over two periods: each comes after the free of
  // the one before it, and so after all before that.
  void share() {
    Occupants occupants;
    for (const bool next : {false, true}) {
      std::vector<bool> came(program_.buffers.size(), false);
      for (const BufferId own : users_) {
        const auto follow = [&](BufferId before) {
          if (came[index(before)] && !next) {
            check(before, own, false);
          } else if (!came[index(before)] && next) {
            check(before, own, true);
          }
        };
        occupants.take(buffer(own).offset, end_[index(own)], own, follow);
        came[index(own)] = true;
        if (report_.full()) {
          return;
        }
      }
    }
  }

  void check(BufferId before, BufferId own, bool next) {
    const std::uint32_t free = index(buffer(before).free), alloc = index(buffer(own).alloc);
    if (next ? order_.before_next(free, alloc) : order_.before(free, alloc)) {
      return;
    }
    report_.add("plan.arena",
                report_.task({id_, alloc}) + " puts " + named(own) + " at " +
                    std::to_string(buffer(own).offset) + " of the arena" +
                    (next ? " in the next period" : "") + " while " + named(before) +
                    " may still be there: it does not wait for " + report_.task({id_, free}),
                {id_, alloc});
  }

  void bad(std::string message) { report_.add("plan.arena", std::move(message)); }

  Report& report_;
  std::uint32_t id_;
  const Program& program_;
  const LocalOrder& order_;
  std::vector<std::int64_t> end_;  // by buffer, in the arena
  std::vector<BufferId> users_;
};

}  // namespace

void check_arena(Report& report, std::uint32_t program, const LocalOrder& order) {
  Arena(report, program, order).run();
}

}  // namespace piper
