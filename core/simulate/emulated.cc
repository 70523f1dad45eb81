#include "core/simulate/emulated.h"

#include <algorithm>
#include <cmath>

#include "core/plan/microbatch.h"

namespace piper {
namespace {

double pass_ms(Op op, const EmulateConfig& emulate) {
  const double input = emulate.backward_input_ms.value_or(0);
  const double weight = emulate.backward_weight_ms.value_or(0);
  switch (traits(op).cost) {
    case Cost::forward:
      return emulate.forward_ms.value_or(0);
    case Cost::backward:
      return input + weight;
    case Cost::backward_input:
      return input;
    case Cost::backward_weight:
      return weight;
    case Cost::update:
    case Cost::message:
    case Cost::ring:
    case Cost::fixed:
      break;
  }
  return 0;
}

double moving(const EmulateConfig& emulate, double bytes) {
  return emulate.link_latency_us * 1e3 + (emulate.link_gbps ? bytes * 8 / *emulate.link_gbps : 0);
}

std::uint64_t communication(const Plan& plan, const Program& program, const Task& task,
                            const EmulateConfig& emulate) {
  if (is_point_to_point(task.op)) {
    return message_delay(emulate, task.bytes.at(rows_of(plan, program, 0, task.microbatch).count));
  }
  const Communicator& group = plan.communicators[index(task.communicator)];
  const std::size_t members = group.group_size > 0 ? group.group_size : group.ranks.size();
  return ring_delay(emulate, traits(task.op).rounds, task.bytes.fixed,
                    static_cast<std::uint32_t>(members));
}

}  // namespace

std::uint64_t message_delay(const EmulateConfig& emulate, std::int64_t bytes) {
  return static_cast<std::uint64_t>(std::llround(moving(emulate, static_cast<double>(bytes))));
}

std::uint64_t ring_delay(const EmulateConfig& emulate, std::uint32_t turns, std::int64_t bytes,
                         std::uint32_t members) {
  return static_cast<std::uint64_t>(std::llround(
      1.0 * turns * (members - 1) * moving(emulate, static_cast<double>(bytes) / members)));
}

Durations emulated_durations(const Plan& plan, const EmulateConfig& emulate) {
  Durations durations;
  for (const Program& program : plan.programs) {
    PerMicrobatch<std::uint32_t> shares(plan);  // forwards
    for (const Task& task : program.tasks) {
      if (task.op == Op::forward) {
        ++shares[task];
      }
    }
    durations.emplace_back();
    for (const Task& task : program.tasks) {
      const double ms = pass_ms(task.op, emulate);
      durations.back().push_back(
          emulate.computes() && ms > 0
              ? static_cast<std::uint64_t>(std::llround(ms * 1e6 / shares[task]))
          : is_communication(task.op) && valid(task.communicator) && emulate.delays()
              ? communication(plan, program, task, emulate)
              : 0);
    }
  }
  return durations;
}

}  // namespace piper
