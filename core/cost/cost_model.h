// What tasks cost, as far as the job says: an input of the planner like any other. The plan is
// correct under any of them; they decide only what runs first where an order is free, and what a
// prediction says.
//
//   unit        a forward, a BI and a BW take 1 each, a B takes 2; the rest is small
//   analytical  a roofline: floating-point operations, bytes and links of a described machine
//   measured    durations of computations from a file; communication from the machine
//
// docs/costs.md describes both files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/plan/plan.h"

namespace piper {

struct Link {
  double latency_us = 0;
  double gbps = 1;  // gigabits a second, one way
};

// What one rank achieves, and how ranks are joined.
struct Machine {
  std::string name = "generic";
  double tflops = 100;         // 1e12 floating-point operations a second, in the job's dtype
  double memory_gbps = 16000;  // gigabits a second
  std::uint32_t ranks_per_node = 8;
  Link node{5, 3200}, network{10, 400};  // inside a node; between nodes
};

// Seconds of one pass over consecutive regions for one micro-batch.
struct MeasuredCost {
  Op op = Op::forward;
  std::uint32_t first = 0, last = 0;  // regions, both included
  double us = 0;
  Location where;
};

struct CostModel {
  enum class Kind : std::uint8_t { unit, analytical, measured };
  Kind kind = Kind::unit;
  Machine machine;
  std::vector<MeasuredCost> measured;
  std::string measured_file;
};

// Reads the files that [cost] names. Errors: cost.file (cannot be read), cost.key, cost.type,
// cost.range, cost.op, cost.twice.
Expected<CostModel> load_cost_model(const Config& config);

// The same of texts; `file` is for messages.
Expected<Machine> parse_machine(std::string_view text, const std::string& file);
Expected<std::vector<MeasuredCost>> parse_measured(std::string_view text, const std::string& file);

}  // namespace piper
