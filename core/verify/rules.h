// The rules of the verifier, one source file a family. Each keeps what it finds in the report.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/model_facts.h"
#include "core/verify/order.h"
#include "core/verify/report.h"

namespace piper {

// By communicator, for each rank of the world: is it a member? Empty for pairs.
std::vector<std::vector<bool>> find_members(const Plan& plan);

// Is every rank of the program in exactly one group, and nobody else?
bool covers(const Communicator& communicator, const Program& program);

// plan.form: every number is in range, the streams partition the tasks, every rank has one program.
// Nothing else may be looked at unless this holds.
void check_structure(Report& report);

// plan.form: chunks and buckets say the same as the model.
void check_tables(Report& report);

// plan.form: the tasks are those that the chunks ask for, and read and write what their chunks,
// buckets and values say; so a plan that lost a task or a data edge is refused.
void check_tasks(Report& report, const ModelFacts& facts);

// plan.form: the size and kind of a program's buffers.
void check_buffer_sizes(Report& report, const ModelFacts& facts, std::uint32_t program);

// plan.cycle. False, with an error, if the order of streams and waits has a cycle.
bool check_cycle(Report& report, std::uint32_t program, LocalOrder& order);

// plan.missing_wait, plan.race, and what plan.reduction, plan.update and plan.materialised say
// about order: see accesses.cc.
void check_accesses(Report& report, std::uint32_t program, const LocalOrder& order,
                    const AccessIndex& accesses);

// plan.release: every buffer is allocated before its users and freed once, after them.
void check_release(Report& report, std::uint32_t program, const LocalOrder& order,
                   const AccessIndex& accesses);

// plan.arena: buffers are inside the arena, and those that share bytes of it come one after
// another, in this period and the next.
void check_arena(Report& report, std::uint32_t program, const LocalOrder& order);

// plan.unmatched_send and plan.channel_order.
void check_channels(Report& report);

// plan.collective_order: all members launch the same on a communicator, each on one stream. (Across
// communicators: check_rendezvous.)
void check_collectives(Report& report);

// plan.reduction, plan.update and plan.materialised: how often, and over whom.
void check_gradients(Report& report);

// plan.deadlock, and plan.collective_order across communicators: runs the plan with sends that hold
// nothing. Needs matched sends and equal sequences of collectives.
void check_rendezvous(Report& report);

}  // namespace piper
