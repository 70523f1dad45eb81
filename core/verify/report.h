// What the rules share: the plan under proof, the errors so far, and how a task, a buffer or a rank
// is named in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// A task of a program, by numbers.
struct TaskPlace {
  std::uint32_t program = 0, task = 0;
};

class Report {
 public:
  static constexpr std::size_t kMostErrors = 20;

  Report(const Plan& the_plan, const ModelGraph& the_model) : plan(the_plan), model(the_model) {}

  const Plan& plan;
  const ModelGraph& model;

  bool ok() const { return errors_.empty(); }
  std::size_t count() const { return errors_.size(); }
  bool full() const { return errors_.size() >= kMostErrors; }
  Status result();

  // Keeps an error that is about a task: it points where the task comes from.
  void add(std::string code, std::string message, TaskPlace at);
  // Keeps an error about the plan as a whole. Returns it for notes; nothing to note on when full.
  void add(std::string code, std::string message);
  void add(Diagnostic diagnostic);

  // `forward PP=1 mb 3 on ranks 1, 3 (stream compute)`.
  std::string task(TaskPlace at) const;
  // `activation %5 mb 3`, `gradient %5 mb 3 of PP=1`, `parameter bucket 2`.
  std::string buffer(const Buffer& buffer) const;
  // `rank 1`, `ranks 1, 3`.
  std::string ranks(const std::vector<std::uint32_t>& ranks) const;
  Location where(TaskPlace at) const;

 private:
  Diagnostics errors_;
};

}  // namespace piper
