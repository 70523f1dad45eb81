#include "tests/support/broken_plans.h"

#include <algorithm>
#include <functional>

#include "tests/support/plan_edit.h"
#include "tests/support/sharded_toy.h"

namespace piper::test {
namespace {

using Kind = Buffer::Kind;

class Broken {
 public:
  void add(std::string name, std::string code, const PipelineShape& shape,
           const std::function<void(Plan&)>& change) {
    add(std::move(name), std::move(code), pipeline(shape), change);
  }

  void add(std::string name, std::string code, const ShardedShape& shape,
           const std::function<void(Plan&)>& change) {
    ShardedJob job = sharded_job(shape);
    Expected<Plans> plans = plan(job);
    PIPER_CHECK(plans.has_value(), plans ? "" : to_string(plans.error()));
    add(std::move(name), std::move(code), PipelineCase{std::move(job.model), plans->train}, change);
  }

  void add(std::string name, std::string code, PipelineCase made,
           const std::function<void(Plan&)>& change) {
    change(made.plan);
    const bool is_first = std::none_of(plans_.begin(), plans_.end(),
                                       [&](const BrokenPlan& known) { return known.code == code; });
    plans_.push_back({std::move(name), std::move(code), is_first, std::move(made)});
  }
  std::vector<BrokenPlan> take() { return std::move(plans_); }

 private:
  std::vector<BrokenPlan> plans_;
};

void drop_wait(ProgramEdit& program, std::uint32_t task, std::uint32_t awaited,
               bool previous = false) {
  std::erase(program[task].waits, Wait{TaskId{awaited}, previous});
}

std::uint32_t find_buffer(const Program& program, Kind kind, std::uint32_t microbatch = 0) {
  for (std::uint32_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].kind == kind && program.buffers[b].microbatch == microbatch) {
      return b;
    }
  }
  PIPER_CHECK(false, "no such buffer in the test's plan");
}

void add_form(Broken& broken) {
  broken.add("a data edge is dropped", "plan.form", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 1);
    const std::uint32_t forward = program.find(Op::forward, 1);
    program[forward].reads.erase(program[forward].reads.begin());
    std::erase_if(program[forward].waits,
                  [&](const Wait& wait) { return program[index(wait.task)].task.op == Op::recv; });
  });
  broken.add("a backward is lost", "plan.form", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    const std::uint32_t backward = program.find(Op::backward, 0);
    program[backward + 1].frees.insert(program[backward + 1].frees.end(),
                                       program[backward].frees.begin(),
                                       program[backward].frees.end());
    for (Buffer& buffer : program.program().buffers) {
      buffer.free = buffer.free == TaskId{backward} ? TaskId{backward + 1} : buffer.free;
    }
    program.erase(backward);
  });
  broken.add("a task waits for one that records nothing", "plan.form", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               program[program.find(Op::input)].task.records = false;
             });
  broken.add("a rank is in two programs", "plan.form", PipelineShape{},
             [](Plan& plan) { plan.programs[1].ranks = {0}; });
  broken.add("a chunk has an input too many", "plan.form", PipelineShape{},
             [](Plan& plan) { plan.chunks[1].inputs.push_back(ValueId{0}); });
  broken.add("a buffer has another size", "plan.form", PipelineShape{}, [](Plan& plan) {
    plan.programs[0].buffers[find_buffer(plan.programs[0], Kind::activation)].bytes = {64, 0};
  });
  broken.add("an access is out of range", "plan.form", PipelineShape{},
             [](Plan& plan) { plan.programs[0].access[0] = BufferId{99}; });
  broken.add("fewer rows than micro-batches", "plan.form", PipelineShape{},
             [](Plan& plan) { plan.global_rows = 1; });
  broken.add("a backward when evaluating", "plan.form", PipelineShape{},
             [](Plan& plan) { plan.kind = Plan::Kind::evaluate; });
  broken.add("a loss_report is lost", "plan.form", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    program.erase(program.find(Op::loss_report));
  });
}

void add_order(Broken& broken) {
  broken.add("a forward waits for the send of its result", "plan.cycle", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               program.add_wait(program.find(Op::forward, 0), program.find(Op::send, 0));
             });
  broken.add("a forward does not wait for its receive", "plan.missing_wait", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit program(plan, 1);
               drop_wait(program, program.find(Op::forward, 1), program.find(Op::recv, 1));
               drop_wait(program, program.find(Op::backward, 1), program.find(Op::recv, 1));
             });
  broken.add("a send does not wait for its forward", "plan.missing_wait", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               drop_wait(program, program.find(Op::send, 0), program.find(Op::forward, 0));
             });
  broken.add("halves of a backward are exchanged", "plan.missing_wait",
             PipelineShape{.split_backward = true}, [](Plan& plan) {
               ProgramEdit program(plan, 0);
               program.swap(program.find(Op::backward_input, 0),
                            program.find(Op::backward_weight, 0));
             });
  broken.add("an update does not wait for the norm", "plan.missing_wait", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               for (const std::uint32_t bucket : {0U, 1U}) {
                 drop_wait(program, program.find(Op::update, ProgramEdit::kAny, bucket),
                           program.find(Op::grad_norm));
               }
             });
  broken.add("the next count does not wait for the last report", "plan.race", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit program(plan, 1);
               drop_wait(program, program.find(Op::token_count), program.find(Op::loss_report),
                         true);
             });
}

void add_messages(Broken& broken) {
  broken.add("a send has the receive of another micro-batch", "plan.unmatched_send",
             PipelineShape{}, [](Plan& plan) {
               ProgramEdit sender(plan, 0), receiver(plan, 1);
               Task& first = sender[sender.find(Op::send, 0)].task;
               Task& second = sender[sender.find(Op::send, 1)].task;
               std::swap(first.peer, second.peer);
               std::swap(receiver[receiver.find(Op::recv, 0)].task.peer,
                         receiver[receiver.find(Op::recv, 1)].task.peer);
             });
  broken.add(
      "the receive of a send is gone", "plan.unmatched_send", PipelineShape{}, [](Plan& plan) {
        ProgramEdit sender(plan, 0);
        sender[sender.find(Op::send, 1)].task.peer = sender[sender.find(Op::input)].task.node;
      });
  broken.add("a receive is on another channel", "plan.unmatched_send", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit receiver(plan, 1);
               receiver[receiver.find(Op::recv, 0)].task.communicator = CommId{1};
             });
  broken.add("two receives are exchanged", "plan.channel_order", PipelineShape{}, [](Plan& plan) {
    ProgramEdit receiver(plan, 1);
    receiver.swap(receiver.find(Op::recv, 0), receiver.find(Op::recv, 1));
  });
  broken.add("scalars are exchanged on one rank", "plan.collective_order",
             PipelineShape{.report = PipelineShape::Report::scalar}, [](Plan& plan) {
               ProgramEdit program(plan, 0);
               program.swap(program.find(Op::grad_norm), program.find(Op::loss_report));
             });
  broken.add("scalars of two communicators are exchanged on one rank", "plan.collective_order",
             PipelineShape{.report = PipelineShape::Report::scalar_apart}, [](Plan& plan) {
               ProgramEdit program(plan, 0);
               program.swap(program.find(Op::grad_norm), program.find(Op::loss_report));
             });
  broken.add("a communicator is used on two streams", "plan.collective_order", PipelineShape{},
             [](Plan& plan) {
               for (std::uint32_t p = 0; p < 2; ++p) {
                 ProgramEdit program(plan, p);
                 program[program.find(Op::loss_report)].task.communicator =
                     program[program.find(Op::grad_norm)].task.communicator;
               }
             });
  broken.add("each rank waits to receive before it sends", "plan.deadlock", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit first(plan, 0), second(plan, 1);
               first.add_wait(first.find(Op::send, 1), first.find(Op::recv, 0));
               second.add_wait(second.find(Op::backward, 0), second.find(Op::recv, 1));
             });
}

void add_lifetimes(Broken& broken) {
  broken.add("a buffer is never freed", "plan.release", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    program[program.find(Op::backward, 0)].frees.pop_back();
  });
  broken.add("a buffer is freed twice", "plan.release", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    const std::uint32_t backward = program.find(Op::backward, 0);
    program[backward].frees.push_back(program[backward].frees.back());
  });
  broken.add("a buffer is freed before its last reader", "plan.release", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               const std::uint32_t backward = program.find(Op::backward, 0);
               const std::uint32_t buffer = find_buffer(program.program(), Kind::activation);
               std::erase(program[backward].frees, BufferId{buffer});
               program[backward - 1].frees.push_back(BufferId{buffer});
               program.program().buffers[buffer].free = TaskId{backward - 1};
             });
  broken.add("a buffer is freed while it is sent", "plan.release", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    drop_wait(program, program.find(Op::backward, 1), program.find(Op::send, 1));
  });
  broken.add("an input is delivered while that of the last step is in use", "plan.release",
             PipelineShape{}, [](Plan& plan) {
               ProgramEdit program(plan, 0);
               std::erase_if(program[program.find(Op::input)].waits,
                             [](const Wait& wait) { return wait.previous; });
             });
  broken.add("a parameter is freed", "plan.release", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    program[program.find(Op::update)].frees.push_back(
        BufferId{find_buffer(program.program(), Kind::parameter)});
  });
  broken.add("two received values share bytes of the arena", "plan.arena", PipelineShape{},
             [](Plan& plan) {
               Program& program = plan.programs[1];
               program.buffers[find_buffer(program, Kind::activation, 1)].offset =
                   program.buffers[find_buffer(program, Kind::activation, 0)].offset + 64;
             });
  broken.add("the next step does not wait for bytes of the arena", "plan.arena", PipelineShape{},
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               std::erase_if(program[program.find(Op::recv, 0)].waits,
                             [](const Wait& wait) { return wait.previous; });
             });
  broken.add("a buffer is never allocated", "plan.release", PipelineShape{}, [](Plan& plan) {
    Program& program = plan.programs[0];
    program.buffers[find_buffer(program, Kind::saved, 0)].alloc = none<TaskId>();
  });
  broken.add("the arena is too small", "plan.arena", PipelineShape{},
             [](Plan& plan) { plan.programs[1].arena_bytes = 64; });
  broken.add("a place in the arena is not aligned", "plan.arena", PipelineShape{}, [](Plan& plan) {
    Program& program = plan.programs[1];
    program.buffers[find_buffer(program, Kind::activation, 0)].offset += 32;
  });
  broken.add("a parameter has a place in the arena", "plan.form", PipelineShape{}, [](Plan& plan) {
    Program& program = plan.programs[1];
    program.buffers[find_buffer(program, Kind::parameter)].offset = 0;
  });
}

void add_gradients(Broken& broken) {
  const PipelineShape replicated{.replicas = 2};
  broken.add("a reduction does not wait for the last backward", "plan.reduction", replicated,
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               drop_wait(program, program.find(Op::all_reduce), program.find(Op::backward, 1));
             });
  broken.add("a bucket is not reduced", "plan.reduction", replicated, [](Plan& plan) {
    ProgramEdit program(plan, 1);
    program.erase(program.find(Op::all_reduce));
  });
  broken.add("a bucket is reduced twice", "plan.reduction", replicated, [](Plan& plan) {
    ProgramEdit program(plan, 1);
    program.duplicate(program.find(Op::all_reduce));
  });
  broken.add(
      "a tied weight is reduced over one home only", "plan.reduction",
      PipelineShape{.replicas = 2, .tied = true}, [](Plan& plan) {
        plan.communicators.push_back({Communicator::Kind::collective, "reduce", 0, 0, {0, 1}});
        plan.communicators.push_back({Communicator::Kind::collective, "reduce", 0, 0, {2, 3}});
        for (std::uint32_t p = 0; p < 2; ++p) {
          ProgramEdit program(plan, p);
          program[program.find(Op::all_reduce, ProgramEdit::kAny, 0)].task.communicator =
              CommId{static_cast<std::uint32_t>(plan.communicators.size() - 2 + p)};
        }
      });
  broken.add("a norm does not wait for a reduction", "plan.reduction", replicated, [](Plan& plan) {
    ProgramEdit program(plan, 1);
    drop_wait(program, program.find(Op::grad_norm), program.find(Op::all_reduce));
  });
  broken.add("a bucket is not updated", "plan.update", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    program.erase(program.find(Op::update));
  });
  broken.add("a bucket of another rank is updated", "plan.update", PipelineShape{}, [](Plan& plan) {
    ProgramEdit first(plan, 0), last(plan, 1);
    first[first.find(Op::update)].task.bucket = last[last.find(Op::update)].task.bucket;
  });
  broken.add("a bucket is updated twice", "plan.update", PipelineShape{}, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    program.duplicate(program.find(Op::update));
  });
}

void add_shards(Broken& broken) {
  const ShardedShape whole{.pp = 1, .microbatches = 2, .zero = 3, .bucket_bytes = 0};
  const ShardedShape pieces{.pp = 1, .microbatches = 2, .zero = 3};
  const ShardedShape hybrid{
      .pp = 1, .dp = 4, .microbatches = 2, .zero = 3, .bucket_bytes = 0, .hybrid = 2};
  broken.add("a forward does not wait for its parameters", "plan.materialised", whole,
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               const std::uint32_t gather = program.find(Op::all_gather);
               drop_wait(program, program.find(Op::forward, 0), gather);
               program.add_wait(program.find(Op::backward, 0), gather);
             });
  broken.add("the parameters of a chain are not gathered", "plan.materialised", pieces,
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               program.erase(program.find(Op::all_gather, 1));
             });
  broken.add("gathered parameters are freed early", "plan.materialised", whole, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    const std::uint32_t buffer = find_buffer(program.program(), Kind::gathered);
    const std::uint32_t last = index(program.program().buffers[buffer].free);
    std::erase(program[last].frees, BufferId{buffer});
    program[last - 1].frees.push_back(BufferId{buffer});
    program.program().buffers[buffer].free = TaskId{last - 1};
  });
  broken.add("what was updated is not gathered", "plan.materialised",
             ShardedShape{.pp = 1, .microbatches = 2, .zero = 1, .bucket_bytes = 0},
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               program.erase(program.find(Op::all_gather));
             });
  broken.add("shards are of other ranks in one gather", "plan.materialised",
             ShardedShape{.pp = 1, .dp = 4, .microbatches = 2, .zero = 3, .hybrid = 2},
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               Task& gather = program[program.find(Op::all_gather, 1)].task;
               Communicator other = plan.communicators[index(gather.communicator)];
               other.ranks = {0, 2, 1, 3};
               gather.communicator = CommId{static_cast<std::uint32_t>(plan.communicators.size())};
               plan.communicators.push_back(other);
             });
  broken.add("a chain is not reduced", "plan.reduction", pieces, [](Plan& plan) {
    ProgramEdit program(plan, 0);
    program.erase(program.find(Op::reduce_scatter, 1));
  });
  broken.add("shards are not reduced over the other groups", "plan.reduction", hybrid,
             [](Plan& plan) {
               ProgramEdit program(plan, 0);
               program.erase(program.find(Op::all_reduce));
             });
  broken.add("shards are reduced with others", "plan.reduction", hybrid, [](Plan& plan) {
    for (const Task& task : plan.programs[0].tasks) {
      if (task.op == Op::all_reduce) {
        plan.communicators[index(task.communicator)].ranks = {0, 3, 1, 2};
      }
    }
  });
  broken.add(
      "experts are reduced with others", "plan.reduction",
      ShardedShape{.pp = 1,
                   .dp = 4,
                   .microbatches = 1,
                   .zero = 0,
                   .bucket_bytes = 0,
                   .ep = 2,
                   .expert_layers = {1}},
      [](Plan& plan) {
        for (const Task& task : plan.programs[0].tasks) {
          if (task.op == Op::all_reduce && plan.buckets[index(task.bucket)].expert_parts == 2) {
            plan.communicators[index(task.communicator)].group_size = 0;
          }
        }
      });
  broken.add("a rank has the experts of another", "plan.form",
             ShardedShape{.pp = 1,
                          .dp = 4,
                          .microbatches = 1,
                          .zero = 0,
                          .bucket_bytes = 0,
                          .ep = 2,
                          .expert_layers = {1}},
             [](Plan& plan) {
               for (Bucket& bucket : plan.buckets) {
                 if (bucket.expert_parts == 2) {
                   std::swap(bucket.parameters.front(), bucket.parameters.back());
                 }
               }
             });
  broken.add("a micro-batch of a stage has no place", "plan.form",
             ShardedShape{.microbatches = 4, .zero = 0, .bucket_bytes = 0, .bidirectional = true},
             [](Plan& plan) { plan.chunks[0].microbatches.pop_back(); });
}

}  // namespace

std::vector<BrokenPlan> broken_plans() {
  Broken broken;
  add_form(broken);
  add_order(broken);
  add_messages(broken);
  add_lifetimes(broken);
  add_gradients(broken);
  add_shards(broken);
  return broken.take();
}

}  // namespace piper::test
