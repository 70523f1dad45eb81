#include "core/simulate/schedule_grid.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <utility>

#include "core/plan/node_name.h"
#include "core/simulate/plan_grid.h"

namespace piper {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

class Drawing {
 public:
  Drawing(const Plan& plan, const ModelGraph& model, const Simulation& run, const TimeUnit& unit)
      : plan_(plan), run_(run), unit_(unit), names_(plan, model) {}

  Grid draw(const Analysis& analysis) {
    std::vector<std::uint32_t> programs(plan_.programs.size());
    std::iota(programs.begin(), programs.end(), 0U);
    std::stable_sort(programs.begin(), programs.end(), [&](std::uint32_t a, std::uint32_t b) {
      return plan_.programs[a].ranks.front() < plan_.programs[b].ranks.front();
    });
    for (const std::uint32_t p : programs) {
      const Program& program = plan_.programs[p];
      grid_.rows.push_back(
          {rank_list(program.ranks), "idle " + percent(analysis.programs[p].bubble), true});
      draw_program(p);
    }
    add_legend();
    scale();
    grid_.axis = unit_.name == "units" ? "time; 1 = a forward of a stage" : "time, " + unit_.name;
    return std::move(grid_);
  }

 private:
  enum class Kind : std::uint8_t {
    forward,
    recompute,
    backward,
    weight,
    pair_forward,
    pair_backward,
    update
  };
  static constexpr std::size_t kKinds = 7;
  static constexpr double kNarrowestBox = 16;  // pixels

  // Members of an overlap group have colours of their own.
  static Kind kind_of(const Task& task) {
    if (task.op == Op::forward) {
      return task.overlap != 0 ? Kind::pair_forward : Kind::forward;
    }
    if (!runs_chunk(task.op) || task.op == Op::recompute) {
      return runs_chunk(task.op) ? Kind::recompute : Kind::update;
    }
    return task.overlap != 0                ? Kind::pair_backward
           : task.op == Op::backward_weight ? Kind::weight
                                            : Kind::backward;
  }
  static Colour colour_of(Kind kind) {
    switch (kind) {
      case Kind::forward:
        return piper::colour_of(Paint::forward);
      case Kind::recompute:
        return piper::colour_of(Paint::recompute);
      case Kind::backward:
        return piper::colour_of(Paint::backward);
      case Kind::weight:
        return piper::colour_of(Paint::backward_weight);
      case Kind::pair_forward:
        return {0x99, 0xdd, 0xff};
      case Kind::pair_backward:
        return {0xff, 0xaa, 0xbb};
      case Kind::update:
        break;
    }
    return piper::colour_of(Paint::update);
  }

  // As narrow as nine of ten labels allow, and easy to tell apart.
  void scale() {
    std::vector<double> needs;  // pixels a unit
    for (const GridBox& box : grid_.boxes) {
      if (!box.label.empty()) {
        needs.push_back(std::max(kNarrowestBox, box_width(box.label)) / (box.end - box.begin));
      }
    }
    if (!needs.empty()) {
      const auto at = needs.begin() + static_cast<std::ptrdiff_t>((needs.size() - 1) * 9 / 10);
      std::nth_element(needs.begin(), at, needs.end());
      grid_.unit = *at;
    }
  }

  void add_legend() {
    const std::string backward = !has_input_  ? "B backward"
                                 : has_whole_ ? "B or BI backward"
                                              : "BI backward, inputs";
    const std::string labels[kKinds] = {
        "F forward",        "R recomputed forward", backward, "BW backward, weights",
        "F of an F&B pair", "B of an F&B pair",     "update"};
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (has_[kind]) {
        grid_.legend.push_back({colour_of(static_cast<Kind>(kind)), labels[kind]});
      }
    }
    if (shades_ > 1) {
      grid_.facts.push_back("Of several stages of a rank, the later ones are lighter.");
    }
  }

  // The number of a stage among those of its place, without its pieces.
  double shade_of(std::uint32_t p, ChunkId chunk) {
    const std::string stage = names_.whole_stage(chunk);
    std::vector<std::string>& known = stages_[p];
    if (known.empty()) {
      for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
        if (plan_.chunks[c].program == p) {
          known.push_back(names_.whole_stage(ChunkId{c}));
        }
      }
      known.erase(std::unique(known.begin(), known.end()), known.end());
      shades_ = std::max(shades_, known.size());
    }
    const auto place = std::find(known.begin(), known.end(), stage) - known.begin();
    return known.size() > 1
               ? 0.5 * static_cast<double>(place) / static_cast<double>(known.size() - 1)
               : 0;
  }

  void draw_program(std::uint32_t p) {
    const Program& program = plan_.programs[p];
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
      const Task& task = program.tasks[t];
      if (!computes(task.op) || run_.times[p][t].begin == run_.times[p][t].end) {
        continue;
      }
      const Kind kind = kind_of(task);
      GridBox box;
      box.row = static_cast<std::uint32_t>(grid_.rows.size() - 1);
      box.begin = static_cast<double>(run_.times[p][t].begin) / unit_.ticks;
      box.end = static_cast<double>(run_.times[p][t].end) / unit_.ticks;
      box.fill =
          valid(task.chunk) ? lighter(colour_of(kind), shade_of(p, task.chunk)) : colour_of(kind);
      box.label = !runs_chunk(task.op) ? "" : std::to_string(task.microbatch);
      box.title = names_.of(plan_, p, task);
      has_[static_cast<std::size_t>(kind)] = true;
      has_whole_ = has_whole_ || (kind == Kind::backward && task.op == Op::backward);
      has_input_ = has_input_ || (kind == Kind::backward && task.op == Op::backward_input);
      grid_.boxes.push_back(std::move(box));
    }
  }

  const Plan& plan_;
  const Simulation& run_;
  const TimeUnit& unit_;
  NodeNames names_;
  std::map<std::uint32_t, std::vector<std::string>> stages_;  // by program
  std::size_t shades_ = 1;
  bool has_[kKinds] = {}, has_whole_ = false, has_input_ = false;
  Grid grid_;
};

}  // namespace

Expected<Grid> schedule_grid(const Plan& plan, const ModelGraph& model, const Simulation& run,
                             const Analysis& analysis, const TimeUnit& unit, std::string title,
                             std::vector<std::string> facts) {
  std::size_t tasks = 0;
  for (const Program& program : plan.programs) {
    tasks += program.streams.empty() ? 0 : program.streams[0].tasks.count;
  }
  if (tasks > kMostPictured) {
    return fail(error("show.too_large", "expected at most " + std::to_string(kMostPictured) +
                                            " computations in a picture, got " +
                                            std::to_string(tasks) +
                                            ": --trace writes all of them"));
  }
  Grid grid = Drawing(plan, model, run, unit).draw(analysis);
  grid.widest = 4800;
  grid.title = std::move(title);
  facts.insert(facts.end(), grid.facts.begin(), grid.facts.end());
  grid.facts = std::move(facts);
  return grid;
}

}  // namespace piper
