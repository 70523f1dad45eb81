#include "pipeline.h"

#include <algorithm>

namespace pipeline {
namespace {

using piper::sdk::Axis;
using piper::sdk::Filter;
using piper::sdk::Job;
using piper::sdk::Partition;
using Units = piper::sdk::Span<piper_unit>;

// The first unit of each stage but the first, as the job says.
std::vector<std::uint32_t> given_boundaries(const Job& job, const Units& units,
                                            std::size_t stages) {
  const auto given = job.get_i64_list("boundaries");
  const std::string rule = "boundaries";
  if (given.size() != stages) {
    job.fail(rule,
             "expected one boundary a stage, " + std::to_string(stages) + " in all, got " +
                 std::to_string(given.size()),
             given.empty() ? axis_of(job).where : given[0].where);
  }
  std::vector<std::uint32_t> firsts;
  for (const auto& boundary : given) {
    std::uint32_t unit = firsts.empty() ? 0 : firsts.back() + 1;
    while (unit < units.size() && units[unit].index != boundary.value) {
      ++unit;
    }
    if (unit == units.size() || (firsts.empty() && unit != 0)) {
      const std::string expected =
          firsts.empty() ? "the first layer, " + std::to_string(units[0].index)
                         : "a layer after " + std::to_string(given[firsts.size() - 1].value);
      job.fail(rule, "expected " + expected + ", got " + std::to_string(boundary.value),
               boundary.where);
    }
    firsts.push_back(unit);
  }
  firsts.erase(firsts.begin());
  return firsts;
}

void tag_stages(Job& job, std::uint32_t stages) {
  const Units units = job.units("layer");
  if (stages > units.size()) {
    const Axis axis = axis_of(job);
    const std::string ranks = std::string(axis.name) + " = " + std::to_string(axis.size);
    const std::string got = stages == axis.size ? ranks : std::to_string(stages) + " on " + ranks;
    job.fail("stages",
             "expected at most " + std::to_string(units.size()) +
                 " stages, one a layer of the model, got " + got,
             axis.where);
  }
  Partition how;
  how.parts = stages;
  if (job.has("boundaries")) {
    how.by = PIPER_BY_BOUNDARIES;
    how.boundaries = given_boundaries(job, units, stages);
  }
  job.tag(Filter(), "PP", how);
}

// By stage: the micro-batches that a row computes with I and W.
std::vector<std::vector<std::uint32_t>> split_microbatches(const std::vector<Row>& rows,
                                                           std::uint32_t stages) {
  std::vector<std::vector<std::uint32_t>> split(stages);
  for (const Row& row : rows) {
    for (const piper_action& action : row.actions()) {
      if (action.pass == PIPER_BACKWARD_INPUT) {
        split[action.stage].push_back(action.microbatch);
      }
    }
  }
  return split;
}

}  // namespace

Axis axis_of(const Job& job) {
  return job.axis(job.get_str("axis").value);
}

const Schedule& chosen(const Job& job, const Schedule* first, const Schedule* last) {
  const std::string_view name = job.get_str("schedule").value;
  const Schedule* found =
      std::find_if(first, last, [&](const Schedule& schedule) { return schedule.name == name; });
  if (found == last) {
    job.fail("schedule",
             "the manifest has a schedule that the plugin has not: " + std::string(name));
  }
  return *found;
}

Shape shape_of(const Job& job, const Schedule& schedule) {
  Shape shape{axis_of(job).size, 1, job.microbatches()};
  shape.stages_per_rank =
      std::clamp(2U, schedule.least_stages_per_rank, schedule.most_stages_per_rank);
  if (job.has("stages_per_rank")) {
    const auto given = job.get_i64("stages_per_rank");
    const std::int64_t least = schedule.least_stages_per_rank, most = schedule.most_stages_per_rank;
    if (given.value < least || given.value > most) {
      job.fail("stages_per_rank",
               std::string(schedule.name) + ": expected " +
                   std::to_string(given.value < least ? least : most) + " stage" +
                   (most == 1 ? "" : "s") + " a rank, got " + std::to_string(given.value),
               given.where);
    }
    shape.stages_per_rank = static_cast<std::uint32_t>(given.value);
  }
  return shape;
}

Homes homes_of(const Shape& shape, Layout layout) {
  Homes homes;
  homes.both_ways = layout == Layout::both_ways;
  const std::uint32_t stages = homes.both_ways ? shape.ranks : shape.stages();
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    const bool returns = layout == Layout::v && stage >= shape.ranks;
    homes.rank.push_back(returns ? 2 * shape.ranks - 1 - stage : stage % shape.ranks);
  }
  return homes;
}

void propose(Job& job, const Homes& homes, const std::vector<Row>& rows) {
  const Axis axis = axis_of(job);
  job.claim_axis(axis.name);
  job.claim_order();
  const auto stages = static_cast<std::uint32_t>(homes.rank.size());
  tag_stages(job, stages);
  const auto split = split_microbatches(rows, stages);
  const auto ranks = [&](std::uint32_t rank) { return job.at({{axis.name, rank}}); };
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    const Filter filter = Filter().equals("PP", stage);
    const std::uint32_t rank = homes.rank[stage];
    if (split[stage].size() == job.microbatches()) {
      job.split_backward(filter);
    } else if (!split[stage].empty()) {
      job.split_backward(Filter(filter).in("MB", split[stage]));
    }
    if (homes.both_ways) {
      const std::uint32_t all = job.microbatches(), half = all / 2;
      job.place(Filter(filter).range("MB", 0, half - 1), ranks(rank));
      job.place(Filter(filter).range("MB", half, all - 1), ranks(axis.size - 1 - rank));
    } else {
      job.place(filter, ranks(rank));
    }
  }
  for (std::uint32_t rank = 0; rank < axis.size; ++rank) {
    job.order_chain(ranks(rank), rows[rank].actions());
  }
}

void refuse_microbatches(const Job& job, const std::string& schedule, const std::string& rule,
                         const std::vector<std::uint32_t>& nearest) {
  std::string numbers;
  for (const std::uint32_t number : nearest) {
    numbers += (numbers.empty() ? "" : " or ") + std::to_string(number);
  }
  job.fail("microbatches",
           schedule + ": expected " + rule + ", got " + std::to_string(job.microbatches()) +
               " micro-batches; the nearest is " + numbers,
           job.microbatches_where());
}

}  // namespace pipeline
