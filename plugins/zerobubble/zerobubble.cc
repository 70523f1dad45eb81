// Pipelines that split backwards, and fill their bubbles with the gradients of weights.
#include "building_blocks.h"
#include "handcrafted.h"
#include "interleave.h"
#include "pipeline.h"

namespace zerobubble {
namespace {

using pipeline::each_rank;
using pipeline::Layout;
using pipeline::refuse_microbatches;
using pipeline::Schedule;
using piper::sdk::Job;

std::vector<Row> interleaved_rows(const Shape& shape) {
  return each_rank(shape, [group = pipeline::equal_groups(shape)](const Shape& s, std::uint32_t r) {
    return interleaved(s, r, group);
  });
}

// One stage a rank: the size of a group makes no difference.
std::vector<Row> zb1p(const Shape& shape) {
  return each_rank(shape, [](const Shape& s, std::uint32_t r) { return interleaved(s, r, 1); });
}

constexpr Schedule kSchedules[] = {
    {"zb1p", Layout::loop, 1, 1, zb1p},
    {"zb_h1", Layout::loop, 1, 1, [](const Shape& s) { return each_rank(s, zb_h1); }},
    {"interleaved_zb", Layout::loop, 1, pipeline::kAnyNumber, interleaved_rows},
    {"zbv", Layout::v, 2, 2, [](const Shape& s) { return each_rank(s, zbv); }},
    {"v_zb", Layout::v, 2, 2, v_zb},
    {"v_half", Layout::v, 2, 2, v_half},
    {"v_min", Layout::v, 2, 2, v_min},
};

// PyTorch's condition, the only reference of interleaved_zb.
void check_groups(const Job& job, const Shape& shape) {
  const auto fits = [&](std::uint32_t microbatches) {
    return pipeline::equal_groups({shape.ranks, shape.stages_per_rank, microbatches}) > 0;
  };
  if (fits(shape.microbatches)) {
    return;
  }
  std::uint32_t fewer = shape.microbatches, more = shape.microbatches;
  while (!fits(fewer)) {
    --fewer;
  }
  while (!fits(more)) {
    ++more;
  }
  refuse_microbatches(job, "interleaved_zb",
                      "equal groups, so a number that micro-batches div ranks divides, " +
                          std::to_string(shape.microbatches / shape.ranks),
                      {fewer, more});
}

void plan(Job& job) {
  const Schedule& schedule = chosen(job, std::begin(kSchedules), std::end(kSchedules));
  const Shape shape = shape_of(job, schedule);
  if (schedule.rows == interleaved_rows) {
    check_groups(job, shape);
  }
  propose(job, homes_of(shape, schedule.layout), schedule.rows(shape));
}

}  // namespace
}  // namespace zerobubble

PIPER_STRATEGY(zerobubble::plan)
