// Every single change of a kind, on plans of several shapes: refused, or harmless by the
// brute-force oracle too.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/verify/verify.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/plan_edit.h"
#include "tests/support/plan_oracle.h"
#include "tests/support/sharded_toy.h"

namespace piper {
namespace {

using test::find_fault;
using test::pipeline;
using test::PipelineCase;
using test::PipelineShape;
using test::ProgramEdit;

std::vector<PipelineShape> shapes() {
  using Report = PipelineShape::Report;
  return {
      {.stages = 2, .microbatches = 3},
      {.stages = 3, .microbatches = 4, .spare_places = 0},
      {.stages = 2, .replicas = 2, .microbatches = 2, .tied = true},
      {.stages = 2, .microbatches = 2, .split_backward = true},
      {.stages = 4, .microbatches = 2, .folded = true},
      {.stages = 2, .microbatches = 3, .evaluates = true},
      {.stages = 2, .microbatches = 2, .report = Report::scalar_apart},
  };
}

std::vector<PipelineCase> bases() {
  std::vector<PipelineCase> all;
  for (const PipelineShape& shape : shapes()) {
    all.push_back(pipeline(shape));
  }
  for (const test::ShardedShape& shape : test::small_shapes()) {
    test::ShardedJob job = test::sharded_job(shape);
    Expected<Plans> plans = test::plan(job);
    PIPER_CHECK(plans.has_value(), plans ? "" : to_string(plans.error()));
    for (std::uint32_t p = 0; p < plans->train.programs.size(); ++p) {
      const ProgramEdit laid_out_as_edits_are(plans->train, p);
    }
    all.push_back({std::move(job.model), std::move(plans->train)});
  }
  return all;
}

class Sweep {
 public:
  // Whether a change must always be refused, or only where the oracle finds a fault. The oracle
  // takes accesses to be right; `chains`: a change of order may also make them wrong, since it
  // makes other chains.
  enum class Judge { refused, oracle, chains };

  // `change` makes change number i of a program, or returns false if there is no such.
  void run(const std::string& kind, Judge judge,
           const std::function<bool(Plan&, std::uint32_t program, std::uint32_t i)>& change) {
    std::uint32_t refused = 0, accepted = 0;
    for (const PipelineCase& base : bases_) {
      for (std::uint32_t p = 0; p < base.plan.programs.size(); ++p) {
        for (std::uint32_t i = 0;; ++i) {
          PipelineCase mutant = base;
          if (!change(mutant.plan, p, i)) {
            break;
          }
          if (mutant.plan == base.plan) {
            continue;
          }
          const Status status = verify(mutant.plan, mutant.model);
          status ? ++accepted : ++refused;
          if (judge == Judge::refused) {
            EXPECT_FALSE(status) << kind << " " << i << " of program " << p << " is accepted\n"
                                 << print(mutant.plan, mutant.model);
          } else {
            const std::string fault = find_fault(mutant.plan);
            if (judge == Judge::chains && !status && fault.empty() &&
                status.error()[0].code == "plan.form") {
              continue;
            }
            EXPECT_EQ(status.has_value(), fault.empty())
                << kind << " " << i << " of program " << p << ": the oracle says '" << fault
                << "', the verifier " << (status ? "nothing" : to_string(status.error())) << "\n"
                << print(mutant.plan, mutant.model);
          }
        }
      }
    }
    std::printf("  %-34s %6u refused %6u harmless\n", kind.c_str(), refused, accepted);
    EXPECT_GT(refused, 0u) << kind;
  }

 private:
  const std::vector<PipelineCase> bases_ = bases();
};

// Change number i is about item number i over all tasks: `count` items a task.
bool nth(const ProgramEdit& edit, std::uint32_t i,
         const std::function<std::size_t(std::uint32_t task)>& count, std::uint32_t& task,
         std::size_t& item) {
  std::size_t left = i;
  for (task = 0; task < edit.size(); ++task) {
    if (left < count(task)) {
      item = left;
      return true;
    }
    left -= count(task);
  }
  return false;
}

bool with_wait(
    Plan& plan, std::uint32_t program, std::uint32_t i,
    const std::function<void(ProgramEdit&, std::uint32_t task, std::size_t wait)>& change) {
  ProgramEdit edit(plan, program);
  std::uint32_t task = 0;
  std::size_t wait = 0;
  if (!nth(
          edit, i, [&](std::uint32_t t) { return edit[t].waits.size(); }, task, wait)) {
    return false;
  }
  change(edit, task, wait);
  return true;
}

bool with_task(Plan& plan, std::uint32_t program, std::uint32_t i,
               const std::function<void(ProgramEdit&, std::uint32_t task)>& change) {
  ProgramEdit edit(plan, program);
  if (i >= edit.size()) {
    return false;
  }
  change(edit, i);
  return true;
}

using Judge = Sweep::Judge;

TEST(Mutation, OfWaitsIsRefusedOrHarmless) {
  Sweep sweep;
  sweep.run("drop a wait", Judge::oracle, [](Plan& plan, std::uint32_t p, std::uint32_t i) {
    return with_wait(plan, p, i, [](ProgramEdit& edit, std::uint32_t t, std::size_t w) {
      edit[t].waits.erase(edit[t].waits.begin() + static_cast<std::ptrdiff_t>(w));
    });
  });
  sweep.run("wait for the period before instead", Judge::oracle,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_wait(plan, p, i, [](ProgramEdit& edit, std::uint32_t t, std::size_t w) {
                edit[t].waits[w].previous = !edit[t].waits[w].previous;
              });
            });
  sweep.run("wait for the task before instead", Judge::oracle,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_wait(plan, p, i, [](ProgramEdit& edit, std::uint32_t t, std::size_t w) {
                const std::uint32_t awaited = index(edit[t].waits[w].task);
                if (awaited > 0 && edit[awaited].task.stream == edit[awaited - 1].task.stream) {
                  edit[t].waits[w].task = TaskId{awaited - 1};
                  edit[awaited - 1].task.records = true;
                }
              });
            });
  sweep.run("drop all waits of a task", Judge::oracle,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_task(plan, p, i,
                               [](ProgramEdit& edit, std::uint32_t t) { edit[t].waits.clear(); });
            });
}

TEST(Mutation, OfEventsIsRefused) {
  Sweep sweep;
  sweep.run("do not record an awaited event", Judge::refused,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_wait(plan, p, i, [](ProgramEdit& edit, std::uint32_t t, std::size_t w) {
                edit[index(edit[t].waits[w].task)].task.records = false;
              });
            });
}

TEST(Mutation, OfTheOrderOfTasksIsRefusedOrHarmless) {
  Sweep sweep;
  sweep.run("swap neighbours on a stream", Judge::chains,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_task(plan, p, i, [](ProgramEdit& edit, std::uint32_t t) {
                if (t + 1 < edit.size() && edit[t].task.stream == edit[t + 1].task.stream) {
                  edit.swap(t, t + 1);
                }
              });
            });
  sweep.run("wait for the last task of a stream", Judge::oracle,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_task(plan, p, i, [&](ProgramEdit& edit, std::uint32_t t) {
                const std::uint32_t streams =
                    static_cast<std::uint32_t>(edit.program().streams.size());
                const Range range =
                    edit.program().streams[(index(edit[t].task.stream) + 1) % streams].tasks;
                if (range.count > 0) {
                  edit.add_wait(t, range.begin + range.count - 1);
                }
              });
            });
}

TEST(Mutation, OfTasksIsRefused) {
  Sweep sweep;
  sweep.run("lose a task", Judge::refused, [](Plan& plan, std::uint32_t p, std::uint32_t i) {
    return with_task(plan, p, i, [](ProgramEdit& edit, std::uint32_t t) { edit.erase(t); });
  });
  sweep.run("do a task twice", Judge::refused, [](Plan& plan, std::uint32_t p, std::uint32_t i) {
    return with_task(plan, p, i, [](ProgramEdit& edit, std::uint32_t t) { edit.duplicate(t); });
  });
  sweep.run("do it for another micro-batch", Judge::refused,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_task(plan, p, i, [&](ProgramEdit& edit, std::uint32_t t) {
                if (is_point_to_point(edit[t].task.op) || valid(edit[t].task.chunk)) {
                  edit[t].task.microbatch = (edit[t].task.microbatch + 1) % plan.microbatches;
                }
              });
            });
  sweep.run("do it for another chain", Judge::refused,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_task(plan, p, i, [&](ProgramEdit& edit, std::uint32_t t) {
                if (edit[t].task.op == Op::all_gather || edit[t].task.op == Op::reduce_scatter) {
                  ++edit[t].task.microbatch;
                }
              });
            });
  sweep.run("take the place of another peer", Judge::refused,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_task(plan, p, i, [](ProgramEdit& edit, std::uint32_t t) {
                if (is_point_to_point(edit[t].task.op) && t + 1 < edit.size() &&
                    is_point_to_point(edit[t + 1].task.op)) {
                  edit[t].task.peer = edit[t + 1].task.peer;
                }
              });
            });
  sweep.run(
      "use another communicator", Judge::refused, [](Plan& plan, std::uint32_t p, std::uint32_t i) {
        return with_task(plan, p, i, [&](ProgramEdit& edit, std::uint32_t t) {
          if (is_communication(edit[t].task.op)) {
            const auto count = static_cast<std::uint32_t>(plan.communicators.size());
            edit[t].task.communicator = CommId{(index(edit[t].task.communicator) + 1) % count};
          }
        });
      });
  sweep.run("move another number of bytes", Judge::refused,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              return with_task(plan, p, i, [](ProgramEdit& edit, std::uint32_t t) {
                if (edit[t].task.bytes != Affine{}) {
                  edit[t].task.bytes.fixed += 4;
                }
              });
            });
}

TEST(Mutation, OfAccessesIsRefused) {
  Sweep sweep;
  const auto drop = [](auto member) {
    return [member](Plan& plan, std::uint32_t p, std::uint32_t i) {
      ProgramEdit edit(plan, p);
      std::uint32_t task = 0;
      std::size_t item = 0;
      if (!nth(
              edit, i, [&](std::uint32_t t) { return (edit[t].*member).size(); }, task, item)) {
        return false;
      }
      auto& list = edit[task].*member;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(item));
      return true;
    };
  };
  sweep.run("drop a read", Judge::refused, drop(&ProgramEdit::Item::reads));
  sweep.run("drop a write", Judge::refused, drop(&ProgramEdit::Item::writes));
  sweep.run("drop a free", Judge::refused, drop(&ProgramEdit::Item::frees));
}

TEST(Mutation, OfLifetimesIsRefusedOrHarmless) {
  Sweep sweep;
  const auto move_free = [](int by) {
    return [by](Plan& plan, std::uint32_t p, std::uint32_t i) {
      ProgramEdit edit(plan, p);
      std::uint32_t task = 0;
      std::size_t item = 0;
      if (!nth(
              edit, i, [&](std::uint32_t t) { return edit[t].frees.size(); }, task, item)) {
        return false;
      }
      const std::uint32_t target = task + static_cast<std::uint32_t>(by);
      if (target < edit.size() && edit[target].task.stream == edit[task].task.stream) {
        const BufferId buffer = edit[task].frees[item];
        edit[task].frees.erase(edit[task].frees.begin() + static_cast<std::ptrdiff_t>(item));
        edit[target].frees.push_back(buffer);
        edit.program().buffers[index(buffer)].free = TaskId{target};
      }
      return true;
    };
  };
  sweep.run("free one task earlier", Judge::oracle, move_free(-1));
  sweep.run("free one task later", Judge::oracle, move_free(1));
  sweep.run("move up in the arena", Judge::oracle,
            [](Plan& plan, std::uint32_t p, std::uint32_t i) {
              Program& program = plan.programs[p];
              if (i >= program.buffers.size()) {
                return false;
              }
              if (Buffer& buffer = program.buffers[i]; buffer.in_arena()) {
                const std::int64_t next = buffer.offset + kArenaAlignment;
                buffer.offset =
                    next + bytes_of(plan, program, 0, buffer) <= program.arena_bytes ? next : 0;
              }
              return true;
            });
}

template <typename Change>
void expect_refused(const std::string& kind, Change change) {
  std::uint32_t tried = 0;
  for (const PipelineCase& base : bases()) {
    for (std::uint32_t i = 0;; ++i) {
      PipelineCase mutant = base;
      if (!change(mutant.plan, i)) {
        break;
      }
      if (mutant.plan == base.plan) {
        continue;
      }
      ++tried;
      EXPECT_FALSE(verify(mutant.plan, mutant.model)) << kind << " " << i << "\n"
                                                      << print(mutant.plan, mutant.model);
    }
  }
  std::printf("  %-34s %6u refused\n", kind.c_str(), tried);
  EXPECT_GT(tried, 0u) << kind;
}

TEST(Mutation, OfTablesIsRefused) {
  const auto with_bucket = [](auto change) {
    return [change](Plan& plan, std::uint32_t i) {
      if (i >= plan.buckets.size()) {
        return false;
      }
      change(plan.buckets[i]);
      return true;
    };
  };
  expect_refused("another ZeRO stage", with_bucket([](Bucket& b) { b.zero = (b.zero + 2) % 4; }));
  expect_refused("twice as many shards", with_bucket([](Bucket& b) { b.shards *= 2; }));
  expect_refused("twice as many parts of experts",
                 with_bucket([](Bucket& b) { b.expert_parts *= 2; }));
  expect_refused("a micro-batch less of a chunk", [](Plan& plan, std::uint32_t i) {
    if (i >= plan.chunks.size()) {
      return false;
    }
    if (!plan.chunks[i].microbatches.empty()) {
      plan.chunks[i].microbatches.pop_back();
    }
    return true;
  });
  expect_refused("experts as others, or others as experts", [](Plan& plan, std::uint32_t i) {
    if (i >= plan.chunks.size()) {
      return false;
    }
    plan.chunks[i].experts = !plan.chunks[i].experts;
    return true;
  });
  // Of communicators that a task of a bucket uses: exchange members of two groups.
  expect_refused("members of two groups exchanged", [](Plan& plan, std::uint32_t i) {
    if (i >= plan.communicators.size()) {
      return false;
    }
    Communicator& communicator = plan.communicators[i];
    if (communicator.group_size > 1) {
      std::swap(communicator.ranks[0], communicator.ranks[communicator.group_size + 1]);
    }
    return true;
  });
  expect_refused("groups of another size", [](Plan& plan, std::uint32_t i) {
    if (i >= plan.communicators.size()) {
      return false;
    }
    if (plan.communicators[i].group_size > 1) {
      plan.communicators[i].group_size = 0;
    }
    return true;
  });
}

TEST(Oracle, AcceptsThePlansThatTheVerifierAccepts) {
  for (const PipelineCase& made : bases()) {
    const Status status = verify(made.plan, made.model);

    EXPECT_TRUE(status) << (status ? "" : to_string(status.error()));
    EXPECT_EQ(find_fault(made.plan), "");
  }
}

}  // namespace
}  // namespace piper
