// Pipeline parallelism in which every backward is whole: GPipe, breadth first, 1F1B, interleaved
// 1F1B.
#include "interleave.h"
#include "pipeline.h"
#include "schedules.h"

namespace interleaved1f1b {
namespace {

using pipeline::each_rank;
using pipeline::kAnyNumber;
using pipeline::Layout;
using pipeline::Schedule;
using piper::sdk::Job;

constexpr Schedule kSchedules[] = {
    {"gpipe", Layout::loop, 1, 1, [](const Shape& s) { return each_rank(s, gpipe); }},
    {"looped_bfs", Layout::loop, 1, kAnyNumber,
     [](const Shape& s) { return each_rank(s, looped_bfs); }},
    {"1f1b", Layout::loop, 1, 1,
     [](const Shape& s) { return each_rank(s, one_forward_one_backward); }},
    {"interleaved", Layout::loop, 1, kAnyNumber, nullptr},  // has options of its own
};

// What PyTorch or Megatron-LM take.
bool is_legal(const Shape& shape, std::uint32_t group) {
  return group > 0 && (group == pipeline::equal_groups(shape) || pipeline::is_group(shape, group));
}

// The legal group size that is closest to `wanted`: M is legal in any case.
std::uint32_t nearest_group(const Shape& shape, std::int64_t wanted) {
  std::uint32_t nearest = shape.microbatches;
  for (std::uint32_t group = shape.microbatches; group > 0; --group) {
    const auto distance = [&](std::uint32_t g) { return std::abs(wanted - std::int64_t{g}); };
    if (is_legal(shape, group) && distance(group) <= distance(nearest)) {
      nearest = group;
    }
  }
  return nearest;
}

// Option `group_size`; without it PyTorch's, or, where that is none, the smallest of Megatron-LM's.
std::uint32_t group_size(const Job& job, const Shape& shape) {
  if (!job.has("group_size")) {
    const std::uint32_t equal = pipeline::equal_groups(shape);
    return equal > 0 ? equal : nearest_group(shape, shape.ranks);
  }
  const auto given = job.get_i64("group_size");
  const bool fits = given.value <= shape.microbatches;
  if (!fits || !is_legal(shape, static_cast<std::uint32_t>(given.value))) {
    job.fail("group_size",
             "interleaved: expected groups of at least as many micro-batches as ranks (" +
                 std::to_string(shape.ranks) + "), a last one of no fewer, and at most all " +
                 std::to_string(shape.microbatches) + ", got " + std::to_string(given.value) +
                 "; the nearest is " + std::to_string(nearest_group(shape, given.value)),
             given.where);
  }
  return static_cast<std::uint32_t>(given.value);
}

// Megatron-LM's condition: with one stage a rank, a forward would overlap the backward that it
// feeds.
bool overlapped(const Job& job, const Shape& shape) {
  const auto given = job.get_bool("overlap");
  if (given.value && shape.ranks > 1 && shape.stages_per_rank < 2) {
    job.fail("overlap",
             "interleaved: expected at least 2 stages a rank to overlap forwards with backwards, "
             "got " +
                 std::to_string(shape.stages_per_rank),
             given.where);
  }
  return given.value;
}

void refuse_options_of_interleaved(const Job& job, const Schedule& schedule) {
  for (const char* option : {"group_size", "overlap"}) {
    if (job.written(option)) {
      job.fail(option, "expected option '" + std::string(option) +
                           "' with schedule \"interleaved\" only, got \"" +
                           std::string(schedule.name) + "\"");
    }
  }
}

void plan(Job& job) {
  const Schedule& schedule = chosen(job, std::begin(kSchedules), std::end(kSchedules));
  const Shape shape = shape_of(job, schedule);
  if (schedule.rows != nullptr) {
    refuse_options_of_interleaved(job, schedule);
    propose(job, homes_of(shape, schedule.layout), schedule.rows(shape));
    return;
  }
  const std::uint32_t group = group_size(job, shape);
  const bool overlap = overlapped(job, shape);
  propose(job, homes_of(shape, schedule.layout),
          each_rank(shape, [&](const Shape& s, std::uint32_t rank) {
            return interleaved(s, rank, group, overlap);
          }));
}

}  // namespace
}  // namespace interleaved1f1b

PIPER_STRATEGY(interleaved1f1b::plan)
