#include "runtime/tasks/make_task.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/tasks/all_gather.h"
#include "runtime/tasks/all_reduce.h"
#include "runtime/tasks/backward.h"
#include "runtime/tasks/forward.h"
#include "runtime/tasks/grad_norm.h"
#include "runtime/tasks/input.h"
#include "runtime/tasks/loss_report.h"
#include "runtime/tasks/reduce_scatter.h"
#include "runtime/tasks/token_count.h"
#include "runtime/tasks/transfer.h"
#include "runtime/tasks/update.h"

namespace piper {

namespace {

// A line for each operation that the runtime has.
constexpr std::pair<Op, MadeTask (*)(const Site&)> kTasks[] = {
    {Op::input, make_input},
    {Op::forward, make_forward},
    {Op::recompute, make_recompute},
    {Op::backward, make_backward},
    {Op::backward_input, make_backward_input},
    {Op::backward_weight, make_backward_weight},
    {Op::send, make_send},
    {Op::recv, make_recv},
    {Op::all_reduce, make_all_reduce},
    {Op::reduce_scatter, make_reduce_scatter},
    {Op::all_gather, make_all_gather},
    {Op::token_count, make_token_count},
    {Op::loss_report, make_loss_report},
    {Op::grad_norm, make_grad_norm},
    {Op::update, make_update},
};

auto entry_of(Op op) {
  return std::find_if(std::begin(kTasks), std::end(kTasks),
                      [op](const auto& entry) { return entry.first == op; });
}

}  // namespace

bool has_task(Op op) {
  return entry_of(op) != std::end(kTasks);
}

MadeTask make_task(const Site& site) {
  return has_task(site.task.op) ? entry_of(site.task.op)->second(site)
                                : misfit(site, "this runtime has no such task");
}

}  // namespace piper
