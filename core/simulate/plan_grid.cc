#include "core/simulate/plan_grid.h"

#include <algorithm>
#include <utility>

#include "core/cost/costs.h"
#include "core/plan/node_name.h"
#include "core/simulate/simulate.h"

namespace piper {
namespace {

constexpr std::size_t kMostLinks = 400;

double units(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(kUnit);
}

class Drawing {
 public:
  Drawing(const Plan& plan, const ModelGraph& model)
      : plan_(plan), names_(plan, model), has_(kOps, false) {
    // Without blocks and shared links, a plan that was verified runs.
    times_ = simulate(plan, durations_of(plan, Costs())).value().times;
  }

  Grid draw(std::optional<std::uint32_t> only) {
    std::uint32_t shades = 1;
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      if (!only || *only == p) {
        shades = std::max(shades, draw_program(p));
      }
    }
    for (std::size_t paint = 0; paint < kPaints; ++paint) {
      const std::string label = legend_of(static_cast<Paint>(paint), has_);
      if (!label.empty()) {
        grid_.legend.push_back({colour_of(static_cast<Paint>(paint)), label});
      }
    }
    if (shades > 1) {
      grid_.facts.push_back("A place with several stages draws the later ones lighter.");
    }
    if (grid_.links.size() > kMostLinks) {
      grid_.links.clear();
    } else if (!grid_.links.empty()) {
      grid_.facts.push_back("Thin lines: what a task waited for last, on another stream.");
    }
    grid_.axis = "unit time: F 1, B 2, BI 1, BW 1, update 0.1, communication 0.05";
    return std::move(grid_);
  }

 private:
  // Returns how many shades its stages need.
  std::uint32_t draw_program(std::uint32_t p) {
    const Program& program = plan_.programs[p];
    std::vector<std::string> stages;
    for (std::uint32_t c = 0; c < plan_.chunks.size(); ++c) {
      if (plan_.chunks[c].program == p) {
        stages.push_back(names_.whole_stage(ChunkId{c}));
      }
    }
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
    const auto first_box = static_cast<std::uint32_t>(grid_.boxes.size());
    for (const Stream& stream : program.streams) {
      if (stream.tasks.count == 0) {
        continue;
      }
      const auto row = static_cast<std::uint32_t>(grid_.rows.size());
      grid_.rows.push_back(
          {rank_list(program.ranks), stream.name, stream.kind == Stream::Kind::compute});
      for (const Task& task : program.tasks_of(stream)) {
        box(p, row, task, stages);
      }
    }
    add_links(p, first_box);
    return static_cast<std::uint32_t>(stages.size());
  }

  void box(std::uint32_t p, std::uint32_t row, const Task& task,
           const std::vector<std::string>& stages) {
    const auto t = static_cast<std::size_t>(&task - plan_.programs[p].tasks.data());
    GridBox box;
    box.row = row;
    box.begin = units(times_[p][t].begin);
    box.end = units(times_[p][t].end);
    box.fill = colour_of(traits(task.op).paint);
    if (runs_chunk(task.op)) {
      const auto stage = std::find(stages.begin(), stages.end(), names_.whole_stage(task.chunk));
      const auto place = static_cast<double>(stage - stages.begin());
      box.fill = lighter(
          box.fill, stages.size() > 1 ? 0.6 * place / static_cast<double>(stages.size() - 1) : 0);
      box.label = std::to_string(task.microbatch);
    }
    box.title = names_.of(plan_, p, task);
    has_[static_cast<std::size_t>(task.op)] = true;
    grid_.boxes.push_back(std::move(box));
  }

  // The waits that hold a task back. Streams lie in the order of their tasks, so a task's box is as
  // far from the first as the task.
  void add_links(std::uint32_t p, std::uint32_t first_box) {
    const Program& program = plan_.programs[p];
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
      for (const Wait& wait : program.waits_of(program.tasks[t])) {
        const std::uint32_t awaited = index(wait.task);
        if (!wait.previous && times_[p][t].begin == times_[p][awaited].end) {
          grid_.links.push_back({first_box + awaited, first_box + t});
        }
      }
    }
  }

  const Plan& plan_;
  NodeNames names_;
  Spans times_;
  std::vector<bool> has_;  // by Op
  Grid grid_;
};

}  // namespace

std::string rank_list(const std::vector<std::uint32_t>& ranks, bool is_ascii) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const bool is_run = ranks.size() > 2 && ranks.back() - ranks.front() + 1 == ranks.size();
  if (is_run) {
    return text + std::to_string(ranks.front()) + (is_ascii ? ".." : "–") +
           std::to_string(ranks.back());
  }
  for (std::size_t i = 0; i < ranks.size() && i < 3; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text + (ranks.size() <= 3 ? "" : is_ascii ? ", ..." : ", …");
}

Expected<Grid> plan_grid(const Plan& plan, const ModelGraph& model, std::string title,
                         std::vector<std::string> facts, std::optional<std::uint32_t> program) {
  std::size_t tasks = 0;
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    tasks += !program || *program == p ? plan.programs[p].tasks.size() : 0;
  }
  if (tasks > kMostPictured) {
    return fail(error("show.too_large", "expected at most " + std::to_string(kMostPictured) +
                                            " tasks in a picture, got " + std::to_string(tasks) +
                                            ": --rank N draws what one rank runs, --format json " +
                                            "has everything"));
  }
  Grid grid = Drawing(plan, model).draw(program);
  grid.title = std::move(title);
  facts.insert(facts.end(), grid.facts.begin(), grid.facts.end());
  grid.facts = std::move(facts);
  return grid;
}

}  // namespace piper
