#include "runtime/tasks/make_task.h"

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

MadeTask make_task(const Site& site) {
  switch (site.task.op) {
    case Op::input:
      return make_input(site);
    case Op::forward:
      return make_forward(site);
    case Op::recompute:
      return make_recompute(site);
    case Op::backward:
      return make_backward(site);
    case Op::backward_input:
      return make_backward_input(site);
    case Op::backward_weight:
      return make_backward_weight(site);
    case Op::send:
      return make_send(site);
    case Op::recv:
      return make_recv(site);
    case Op::all_reduce:
      return make_all_reduce(site);
    case Op::reduce_scatter:
      return make_reduce_scatter(site);
    case Op::all_gather:
      return make_all_gather(site);
    case Op::token_count:
      return make_token_count(site);
    case Op::loss_report:
      return make_loss_report(site);
    case Op::grad_norm:
      return make_grad_norm(site);
    case Op::update:
      return make_update(site);
    default:
      return misfit(site, "this runtime has no such task");
  }
}

}  // namespace piper
