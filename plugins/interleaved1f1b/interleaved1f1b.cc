// Pipeline parallelism with one stage a rank: cuts the model along its layers, places stage s on
// the ranks with coordinate s of the axis, and orders each stage's micro-batches.
#include <piper/strategy.hpp>

#include <string>
#include <vector>

#include "partition.h"
#include "schedule.h"

namespace interleaved1f1b {
namespace {

using piper::sdk::Axis;
using piper::sdk::Filter;
using piper::sdk::Job;

std::vector<Unit> units_of(const Job& job) {
  std::vector<std::optional<std::uint32_t>> layers;
  std::vector<std::int64_t> costs;
  for (const piper_region_info& region : job.regions()) {
    layers.push_back(job.tag_of(region, "layer"));
    costs.push_back(region.flops.per_row * job.rows() + region.flops.fixed);
  }
  return make_units(layers, costs);
}

// The first unit of each stage, as the job says.
std::vector<std::size_t> given_boundaries(const Job& job, const std::vector<Unit>& units,
                                          const Axis& axis) {
  const auto given = job.get_i64_list("boundaries");
  const std::string rule = "boundaries";
  if (given.size() != axis.size) {
    job.fail(rule,
             "expected one boundary a stage, " + std::to_string(axis.size) + " in all, got " +
                 std::to_string(given.size()),
             given.empty() ? axis.where : given[0].where);
  }
  std::vector<std::size_t> firsts;
  for (const auto& boundary : given) {
    const std::size_t from = firsts.empty() ? 0 : firsts.back() + 1;
    std::size_t unit = from;
    while (unit < units.size() && units[unit].layer != boundary.value) {
      ++unit;
    }
    if (unit == units.size() || (firsts.empty() && unit != 0)) {
      const std::string expected =
          firsts.empty() ? "the first layer, " + std::to_string(units[0].layer)
                         : "a layer after " + std::to_string(given[firsts.size() - 1].value);
      job.fail(rule, "expected " + expected + ", got " + std::to_string(boundary.value),
               boundary.where);
    }
    firsts.push_back(unit);
  }
  return firsts;
}

// The first unit of each stage.
std::vector<std::size_t> cut(const Job& job, const std::vector<Unit>& units, const Axis& axis) {
  if (axis.size > units.size()) {
    job.fail("stages",
             "expected at most " + std::to_string(units.size()) +
                 " stages, one a layer of the model, got " + std::string(axis.name) + " = " +
                 std::to_string(axis.size),
             axis.where);
  }
  if (job.has("boundaries")) {
    return given_boundaries(job, units, axis);
  }
  std::vector<std::int64_t> costs;
  for (const Unit& unit : units) {
    costs.push_back(unit.cost);
  }
  return balance(costs, axis.size);
}

void plan(Job& job) {
  const Axis axis = job.axis(job.get_str("axis").value);
  job.claim_axis(axis.name);
  job.claim_order();
  const std::vector<Unit> units = units_of(job);
  const std::vector<std::size_t> firsts = cut(job, units, axis);
  const auto regions = job.regions();
  const bool gpipe_order = job.get_str("schedule").value == "gpipe";
  for (std::uint32_t stage = 0; stage < axis.size; ++stage) {
    const bool last = stage + 1 == axis.size;
    const std::size_t end = last ? regions.size() : units[firsts[stage + 1]].first;
    Filter members;
    for (std::size_t r = units[firsts[stage]].first; r < end; ++r) {
      members.region(regions[r].region);
    }
    const piper_ranks ranks = job.at({{axis.name, stage}});
    job.tag(members, "PP", stage);
    job.place(Filter().equals("PP", stage), ranks);
    job.order_chain(ranks, gpipe_order
                               ? gpipe(stage, job.microbatches())
                               : one_forward_one_backward(stage, axis.size, job.microbatches()));
  }
}

}  // namespace
}  // namespace interleaved1f1b

PIPER_STRATEGY(interleaved1f1b::plan)
