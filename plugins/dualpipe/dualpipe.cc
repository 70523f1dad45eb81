// Pipelines in which two streams of micro-batches meet on every rank, so that the communication of
// one hides behind the computation of the other.
#include "eight_steps.h"
#include "pipeline.h"

namespace dualpipe {
namespace {

using pipeline::axis_of;
using pipeline::each_rank;
using pipeline::Layout;
using pipeline::refuse_microbatches;
using pipeline::Schedule;
using pipeline::Shape;
using piper::sdk::Job;

// The V: each micro-batch goes down the ranks and comes back, and so meets later ones.
Row dualpipev(const Shape& shape, std::uint32_t rank) {
  const Lane down{rank}, back{2 * shape.ranks - 1 - rank};
  return eight_steps(down, back, shape.ranks, rank, shape.microbatches);
}

// Half of the micro-batches enter at each end.
Row both_ways(const Shape& shape, std::uint32_t rank) {
  const std::uint32_t half = shape.microbatches / 2;
  const Lane forth = Lane::starting_at(rank, 0);
  const Lane back = Lane::starting_at(shape.ranks - 1 - rank, half);
  const std::uint32_t depth = shape.ranks / 2;
  return rank < depth ? eight_steps(forth, back, depth, rank, half)
                      : eight_steps(back, forth, depth, shape.ranks - 1 - rank, half);
}

constexpr Schedule kSchedules[] = {
    {"dualpipev", Layout::v, 2, 2, [](const Shape& s) { return each_rank(s, dualpipev); }},
    {"dualpipe", Layout::both_ways, 2, 2, [](const Shape& s) { return each_rank(s, both_ways); }},
};

void check(const Job& job, const Shape& shape, const Schedule& schedule) {
  const std::string name(schedule.name);
  const std::string least =
      "at least twice as many micro-batches as ranks, " + std::to_string(2 * shape.ranks);
  const bool both = schedule.layout == Layout::both_ways;
  if (both && shape.ranks % 2 != 0) {
    const auto axis = axis_of(job);
    const std::string fewer = shape.ranks > 1 ? std::to_string(shape.ranks - 1) + " or " : "";
    job.fail("ranks",
             name + ": expected an even number of ranks, got " + std::string(axis.name) + " = " +
                 std::to_string(shape.ranks) + "; the nearest is " + fewer +
                 std::to_string(shape.ranks + 1),
             axis.where);
  }
  if (shape.microbatches < 2 * shape.ranks) {
    refuse_microbatches(job, name, least, {2 * shape.ranks});
  }
  if (both && shape.microbatches % 2 != 0) {
    refuse_microbatches(job, name, "an even number of micro-batches, half for each end",
                        {shape.microbatches - 1, shape.microbatches + 1});
  }
}

void plan(Job& job) {
  const Schedule& schedule = chosen(job, std::begin(kSchedules), std::end(kSchedules));
  const Shape shape = shape_of(job, schedule);
  check(job, shape, schedule);
  propose(job, homes_of(shape, schedule.layout), schedule.rows(shape));
}

}  // namespace
}  // namespace dualpipe

PIPER_STRATEGY(dualpipe::plan)
