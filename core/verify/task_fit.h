// plan.form: may a task be there at all? It has what its op needs (a chunk of its program, a bucket
// that lives there, a communicator of its ranks, groups of the right size, bytes).
#pragma once

#include <string>
#include <vector>

#include "core/verify/chains.h"
#include "core/verify/rules.h"

namespace piper {

class TaskFit {
 public:
  explicit TaskFit(Report& report);

  // False, with an error, for a task that has no place in this plan. `chains`: of its program.
  bool holds(TaskPlace at, const Chains& chains);
  bool has_loss(std::uint32_t program) const { return loss_programs_[program]; }

 private:
  bool trains() const { return plan_.kind == Plan::Kind::train; }
  void bad_task(const std::string& message);
  bool expect_training();
  bool expect_communicator();
  bool expect_chunk();
  bool expect_message();
  bool expect_bucket();
  bool expect_chain(const Bucket& bucket);
  bool expect_own_groups(std::uint32_t size, const char* what);
  bool expect_route();

  Report& report_;
  const Plan& plan_;
  const ModelGraph& model_;
  const std::vector<std::vector<bool>> members_;  // by communicator and rank
  std::vector<bool> loss_programs_;               // by program: it computes the loss
  TaskPlace at_;
  const Program* program_ = nullptr;
  const Task* task_ = nullptr;
  const Chains* chains_ = nullptr;
};

}  // namespace piper
