#include "tests/support/plan_mutation.h"

#include <algorithm>

#include "tests/support/plan_edit.h"

namespace piper::test {
namespace {

using Change = std::function<bool(Plan&, std::uint32_t)>;
using Item = ProgramEdit::Item;

// Finds number i among what `count` says of each task of each program, and changes it.
Change each(std::function<std::size_t(const ProgramEdit&, std::uint32_t task)> count,
            std::function<void(Plan&, ProgramEdit&, std::uint32_t task, std::size_t item)> change) {
  return [count = std::move(count), change = std::move(change)](Plan& plan, std::uint32_t i) {
    std::size_t left = i;
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      ProgramEdit edit(plan, p);
      for (std::uint32_t t = 0; t < edit.size(); ++t) {
        const std::size_t items = count(edit, t);
        if (left < items) {
          change(plan, edit, t, left);
          return true;
        }
        left -= items;
      }
    }
    return false;
  };
}

// Of tasks for which `is_one` holds.
Change tasks(std::function<bool(const Task&)> is_one,
             std::function<void(Plan&, ProgramEdit&, std::uint32_t task)> change) {
  return each(
      [is_one = std::move(is_one)](const ProgramEdit& edit, std::uint32_t t) {
        return is_one(edit[t].task) ? 1U : 0U;
      },
      [change = std::move(change)](Plan& plan, ProgramEdit& edit, std::uint32_t t, std::size_t) {
        change(plan, edit, t);
      });
}

bool is_reduction(const Task& task) {
  return task.op == Op::all_reduce || task.op == Op::reduce_scatter;
}
bool is_collective(const Task& task) {
  return valid(task.communicator) && !is_point_to_point(task.op);
}

// Exchanges a task of the kind with the next such on its stream.
Change swaps(std::function<bool(const Task&)> is_one) {
  return tasks(is_one, [is_one](Plan&, ProgramEdit& edit, std::uint32_t t) {
    for (std::uint32_t next = t + 1; next < edit.size(); ++next) {
      if (edit[next].task.stream != edit[t].task.stream) {
        return;
      }
      if (is_one(edit[next].task)) {
        edit.swap(t, next);
        return;
      }
    }
  });
}

Change moves_free(bool earlier) {
  return each([](const ProgramEdit& edit, std::uint32_t t) { return edit[t].frees.size(); },
              [earlier](Plan&, ProgramEdit& edit, std::uint32_t t, std::size_t item) {
                const std::uint32_t target = earlier ? t - 1 : t + 1;
                if (target >= edit.size() || edit[target].task.stream != edit[t].task.stream) {
                  return;
                }
                const BufferId buffer = edit[t].frees[item];
                edit[t].frees.erase(edit[t].frees.begin() + static_cast<std::ptrdiff_t>(item));
                edit[target].frees.push_back(buffer);
                edit.program().buffers[index(buffer)].free = TaskId{target};
              });
}

// Puts another buffer of the same kind in the place of one that is read or written.
Change misreads(bool is_read, std::function<bool(Buffer::Kind)> is_one) {
  return each(
      [=](const ProgramEdit& edit, std::uint32_t t) {
        return is_read ? edit[t].reads.size() : edit[t].writes.size();
      },
      [=](Plan&, ProgramEdit& edit, std::uint32_t t, std::size_t item) {
        std::vector<BufferId>& list = is_read ? edit[t].reads : edit[t].writes;
        const std::vector<Buffer>& buffers = edit.program().buffers;
        const std::uint32_t old = index(list[item]);
        if (!is_one(buffers[old].kind)) {
          return;
        }
        for (std::size_t step = 1; step < buffers.size(); ++step) {
          const std::size_t other = (old + step) % buffers.size();
          if (buffers[other].kind == buffers[old].kind) {
            list[item] = BufferId{static_cast<std::uint32_t>(other)};
            return;
          }
        }
      });
}

// Takes a task away, and what frees on it goes to its neighbour.
void lose(ProgramEdit& edit, std::uint32_t t) {
  const std::uint32_t heir =
      t > 0 && edit[t - 1].task.stream == edit[t].task.stream ? t - 1 : t + 1;
  if (heir < edit.size() && edit[heir].task.stream == edit[t].task.stream) {
    for (const BufferId buffer : edit[t].frees) {
      edit[heir].frees.push_back(buffer);
      edit.program().buffers[index(buffer)].free = TaskId{heir};
    }
  }
  edit.erase(t);
}

bool any(const Task&) {
  return true;
}

std::function<bool(const Task&)> is(Op op) {
  return [op](const Task& task) { return task.op == op; };
}

std::vector<MutationKind> waits() {
  const auto count = [](const ProgramEdit& edit, std::uint32_t t) { return edit[t].waits.size(); };
  return {
      {"drop a wait", each(count,
                           [](Plan&, ProgramEdit& edit, std::uint32_t t, std::size_t w) {
                             edit[t].waits.erase(edit[t].waits.begin() +
                                                 static_cast<std::ptrdiff_t>(w));
                           })},
      {"drop all waits of a task",
       tasks(any, [](Plan&, ProgramEdit& edit, std::uint32_t t) { edit[t].waits.clear(); })},
      {"wait for the other period",
       each(count, [](Plan&, ProgramEdit& edit, std::uint32_t t,
                      std::size_t w) { edit[t].waits[w].previous = !edit[t].waits[w].previous; })},
      {"wait for the task before",
       each(count,
            [](Plan&, ProgramEdit& edit, std::uint32_t t, std::size_t w) {
              const std::uint32_t awaited = index(edit[t].waits[w].task);
              if (awaited > 0 && edit[awaited].task.stream == edit[awaited - 1].task.stream) {
                edit[t].waits[w].task = TaskId{awaited - 1};
                edit[awaited - 1].task.records = true;
              }
            })},
  };
}

std::vector<MutationKind> orders() {
  return {
      {"swap two receives", swaps(is(Op::recv))},
      {"swap two sends", swaps(is(Op::send))},
      {"swap two sends and their receives",
       [](Plan& plan, std::uint32_t i) {
         // On both ends, so that only order and deadlock can be wrong.
         Plan whole = plan;
         if (!swaps(is(Op::send))(plan, i)) {
           return false;
         }
         for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
           for (std::uint32_t t = 0; t < plan.programs[p].tasks.size(); ++t) {
             const Task &task = plan.programs[p].tasks[t], &old = whole.programs[p].tasks[t];
             if (task.op != Op::send || task.node == old.node) {
               continue;
             }
             for (std::uint32_t q = 0; q < plan.programs.size(); ++q) {
               ProgramEdit edit(plan, q);
               std::uint32_t first = edit.size(), second = first;
               for (std::uint32_t r = 0; r < edit.size(); ++r) {
                 first = edit[r].task.node == task.peer ? r : first;
                 second = edit[r].task.node == old.peer ? r : second;
               }
               if (first < edit.size() && second < edit.size()) {
                 edit.swap(first, second);
               }
             }
             return true;
           }
         }
         return true;
       }},
      {"reorder a collective on one member", swaps(is_collective)},
      {"swap two computations", swaps([](const Task& task) { return runs_chunk(task.op); })},
      {"shift a chain",
       tasks(
           [](const Task& task) {
             return task.op == Op::all_gather || task.op == Op::reduce_scatter;
           },
           [](Plan&, ProgramEdit& edit, std::uint32_t t) { ++edit[t].task.microbatch; })},
  };
}

std::vector<MutationKind> doings() {
  return {
      {"drop a reduction",
       tasks(is_reduction, [](Plan&, ProgramEdit& edit, std::uint32_t t) { lose(edit, t); })},
      {"double a reduction",
       tasks(is_reduction, [](Plan&, ProgramEdit& edit, std::uint32_t t) { edit.duplicate(t); })},
      {"skip a gather",
       tasks(is(Op::all_gather), [](Plan&, ProgramEdit& edit, std::uint32_t t) { lose(edit, t); })},
      {"update twice",
       tasks(is(Op::update), [](Plan&, ProgramEdit& edit, std::uint32_t t) { edit.duplicate(t); })},
      {"skip an update",
       tasks(is(Op::update), [](Plan&, ProgramEdit& edit, std::uint32_t t) { lose(edit, t); })},
      {"drop a computation",
       tasks([](const Task& task) { return runs_chunk(task.op); },
             [](Plan&, ProgramEdit& edit, std::uint32_t t) { lose(edit, t); })},
      {"drop an all-to-all",
       tasks(is(Op::all_to_all), [](Plan&, ProgramEdit& edit, std::uint32_t t) { lose(edit, t); })},
      {"drop the loss report or a count",
       tasks(
           [](const Task& task) {
             return task.op == Op::loss_report || task.op == Op::token_count ||
                    task.op == Op::grad_norm;
           },
           [](Plan&, ProgramEdit& edit, std::uint32_t t) { lose(edit, t); })},
      {"drop a send and its receive",
       [](Plan& plan, std::uint32_t i) {
         NodeId peer = none<NodeId>();
         const bool is_done = tasks(is(Op::send), [&](Plan&, ProgramEdit& edit, std::uint32_t t) {
           peer = edit[t].task.peer;
           lose(edit, t);
         })(plan, i);
         for (std::uint32_t p = 0; p < plan.programs.size() && valid(peer); ++p) {
           ProgramEdit edit(plan, p);
           for (std::uint32_t t = edit.size(); t-- > 0;) {
             if (edit[t].task.node == peer) {
               lose(edit, t);
             }
           }
         }
         return is_done;
       }},
      {"do it for another micro-batch",
       tasks([](const Task& task) { return is_point_to_point(task.op) || valid(task.chunk); },
             [](Plan& plan, ProgramEdit& edit, std::uint32_t t) {
               edit[t].task.microbatch = (edit[t].task.microbatch + 1) % plan.microbatches;
             })},
  };
}

// Gives a buffer of the arena another place; `last` is the highest where it fits.
Change moves_in_arena(std::function<void(Program&, Buffer&, std::int64_t last)> move) {
  return [move = std::move(move)](Plan& plan, std::uint32_t i) {
    for (Program& program : plan.programs) {
      for (Buffer& buffer : program.buffers) {
        if (!buffer.in_arena() || i-- > 0) {
          continue;
        }
        const std::int64_t last = program.arena_bytes - bytes_of(plan, program, 0, buffer);
        move(program, buffer, last / kArenaAlignment * kArenaAlignment);
        return true;
      }
    }
    return false;
  };
}

std::vector<MutationKind> buffers() {
  using Kind = Buffer::Kind;
  const auto is_value = [](Kind kind) { return has_microbatch(kind) && kind != Kind::saved; };
  const auto is_of_bucket = [](Kind kind) {
    return kind == Kind::parameter || kind == Kind::parameter_gradient || kind == Kind::gathered ||
           kind == Kind::full_gradient || kind == Kind::optimizer;
  };
  return {
      {"free early", moves_free(true)},
      {"free late", moves_free(false)},
      {"free never",
       each([](const ProgramEdit& edit, std::uint32_t t) { return edit[t].frees.size(); },
            [](Plan&, ProgramEdit& edit, std::uint32_t t, std::size_t item) {
              edit[t].frees.erase(edit[t].frees.begin() + static_cast<std::ptrdiff_t>(item));
            })},
      {"move up in the arena", moves_in_arena([](Program&, Buffer& buffer, std::int64_t last) {
         buffer.offset =
             buffer.offset + kArenaAlignment <= last ? buffer.offset + kArenaAlignment : 0;
       })},
      {"take another place of the arena",
       moves_in_arena([](Program& program, Buffer& buffer, std::int64_t last) {
         auto other = &buffer - program.buffers.data();
         do {
           other = (other + 1) % std::ssize(program.buffers);
         } while (!program.buffers[static_cast<std::size_t>(other)].in_arena());
         buffer.offset = std::min(last, program.buffers[static_cast<std::size_t>(other)].offset);
       })},
      {"read another value", misreads(true, is_value)},
      {"write another value", misreads(false, is_value)},
      {"read another bucket", misreads(true, is_of_bucket)},
      {"write another bucket", misreads(false, is_of_bucket)},
  };
}

std::vector<MutationKind> communicators() {
  return {
      {"cross two streams",  // a task goes to the start of the next stream
       tasks(any,
             [](Plan&, ProgramEdit& edit, std::uint32_t t) {
               const auto streams = static_cast<std::uint32_t>(edit.program().streams.size());
               const std::uint32_t other = (index(edit[t].task.stream) + 1) % streams;
               const Range range = edit.program().streams[other].tasks;
               if (streams > 1 && range.count > 0) {
                 edit.swap(t, range.begin);
               }
             })},
      {"change a peer", tasks([](const Task& task) { return is_point_to_point(task.op); },
                              [](Plan&, ProgramEdit& edit, std::uint32_t t) {
                                for (std::uint32_t step = 1; step < edit.size(); ++step) {
                                  const Task& other = edit[(t + step) % edit.size()].task;
                                  if (other.op == edit[t].task.op) {
                                    edit[t].task.peer = other.peer;
                                    return;
                                  }
                                }
                              })},
      {"change the communicator",
       tasks([](const Task& task) { return valid(task.communicator); },
             [](Plan& plan, ProgramEdit& edit, std::uint32_t t) {
               const auto count = static_cast<std::uint32_t>(plan.communicators.size());
               edit[t].task.communicator = CommId{(index(edit[t].task.communicator) + 1) % count};
             })},
      {"exchange members of two groups",
       [](Plan& plan, std::uint32_t i) {
         if (i >= plan.communicators.size()) {
           return false;
         }
         Communicator& communicator = plan.communicators[i];
         if (communicator.group_size > 0 && communicator.ranks.size() > communicator.group_size) {
           std::swap(communicator.ranks[0], communicator.ranks[communicator.group_size]);
         }
         return true;
       }},
      {"exchange members of one group",
       [](Plan& plan, std::uint32_t i) {
         if (i >= plan.communicators.size()) {
           return false;
         }
         std::vector<std::uint32_t>& ranks = plan.communicators[i].ranks;
         if (ranks.size() > 1) {
           std::swap(ranks[0], ranks[1]);
         }
         return true;
       }},
  };
}

}  // namespace

const std::vector<MutationKind>& mutation_kinds() {
  static const std::vector<MutationKind> kinds = [] {
    std::vector<MutationKind> all;
    for (const auto& some : {waits(), orders(), doings(), buffers(), communicators()}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return kinds;
}

}  // namespace piper::test
