#include "core/show/csv.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/directives/annotated.h"

namespace piper {
namespace {

std::uint32_t lowest_rank(const std::vector<std::uint32_t>& ranks) {
  return *std::min_element(ranks.begin(), ranks.end());
}

std::string action(std::uint32_t stage, char pass, std::uint32_t microbatch) {
  return std::to_string(stage) + pass + std::to_string(microbatch);
}

class Line {
 public:
  Line(const Plan& plan, const Program& program, std::optional<TagId> stage_tag,
       const OrderNotation& notation)
      : plan_(plan),
        program_(program),
        stage_tag_(stage_tag),
        notation_(notation),
        rank_(lowest_rank(program.ranks)) {}

  // Pieces of a stage run next to each other, or beside those of what they overlap: each action is
  // written where its first piece is.
  Expected<std::string> text() {
    for (const Stream& stream : program_.streams) {
      if (stream.kind != Stream::Kind::compute) {
        continue;
      }
      for (const Task& task : program_.tasks_of(stream)) {
        PIPER_TRY(add(task));
      }
    }
    std::string line;
    for (const std::vector<std::string>& cell : cells_) {
      line += (line.empty() ? "" : ",") + text_of(cell);
    }
    return line;
  }

 private:
  Status add(const Task& task) {
    if (!runs_chunk(task.op) || task.op == Op::recompute) {
      return {};
    }
    PIPER_ASSIGN(const std::uint32_t stage, stage_of(task.chunk));
    const std::uint32_t m = task.microbatch;
    const OrderNotation::Backward backward = notation_.backward(rank_, stage, m);
    if (task.op == Op::forward) {
      write(action(stage, 'F', m), notation_.forward_overlap(rank_, stage, m));
    } else if (task.op == Op::backward || backward.whole) {
      write(action(stage, 'B', m), backward.overlap);
    } else {
      write(action(stage, task.op == Op::backward_input ? 'I' : 'W', m), 0);
    }
    return {};
  }

  // What overlaps is one cell; evaluation has no backwards.
  void write(const std::string& part, std::uint32_t overlap) {
    if (!written_.insert(part).second) {
      return;
    }
    const bool alone = overlap == 0 || plan_.kind == Plan::Kind::evaluate;
    const auto [cell, fresh] =
        alone ? std::pair(groups_.end(), true) : groups_.try_emplace(overlap, cells_.size());
    if (fresh) {
      cells_.push_back({part});
    } else {
      cells_[cell->second].push_back(part);
    }
  }

  // The forward of a pair comes first.
  static std::string text_of(std::vector<std::string> parts) {
    if (parts.size() == 1) {
      return parts.front();
    }
    std::stable_partition(parts.begin(), parts.end(), [](const std::string& part) {
      return part.find('F') != std::string::npos;
    });
    std::string text;
    for (const std::string& part : parts) {
      text += (text.empty() ? "(" : ";") + part;
    }
    return text + ")OVERLAP_F_B";
  }

  Expected<std::uint32_t> stage_of(ChunkId chunk) const {
    if (!stage_tag_) {
      return 0U;
    }
    for (const Tag& tag : plan_.chunks[index(chunk)].tags) {
      if (tag.name == *stage_tag_) {
        return tag.index;
      }
    }
    return fail(error("cli.usage",
                      "--format csv: expected a tag PP on everything that is computed, chunk " +
                          std::to_string(index(chunk)) + " has none"));
  }

  const Plan& plan_;
  const Program& program_;
  std::optional<TagId> stage_tag_;
  const OrderNotation& notation_;
  std::uint32_t rank_;
  std::vector<std::vector<std::string>> cells_;
  std::set<std::string> written_;
  std::map<std::uint32_t, std::size_t> groups_;  // by overlap number: its cell
};

std::optional<TagId> stage_tag(const Plan& plan, const ModelGraph& model) {
  const std::vector<std::string>& names = plan.tag_names.empty() ? model.tag_names : plan.tag_names;
  const auto found = std::find(names.begin(), names.end(), "PP");
  return found == names.end()
             ? std::nullopt
             : std::optional(TagId{static_cast<std::uint32_t>(found - names.begin())});
}

}  // namespace

void OrderNotation::see(const Phase& phase) {
  const auto* annotated = std::get_if<const Annotated*>(&phase.value);
  if (annotated == nullptr) {
    return;
  }
  for (const Annotated::Chain& chain : (*annotated)->chains) {
    const std::uint32_t rank = lowest_rank(chain.ranks.ranks);
    for (const Action& a : chain.actions) {
      const Key key{rank, a.stage, a.microbatch};
      if (a.pass == Pass::forward) {
        forwards_[key] = a.overlap;
      } else if (a.pass == Pass::backward) {
        backwards_[key] = {true, a.overlap};
      }
    }
  }
}

OrderNotation::Backward OrderNotation::backward(std::uint32_t rank, std::uint32_t stage,
                                                std::uint32_t microbatch) const {
  const auto found = backwards_.find({rank, stage, microbatch});
  return found == backwards_.end() ? Backward{} : found->second;
}

std::uint32_t OrderNotation::forward_overlap(std::uint32_t rank, std::uint32_t stage,
                                             std::uint32_t microbatch) const {
  const auto found = forwards_.find({rank, stage, microbatch});
  return found == forwards_.end() ? 0 : found->second;
}

Expected<std::string> csv(const Plan& plan, const ModelGraph& model, const OrderNotation& notation,
                          std::optional<std::uint32_t> program) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> programs;  // by lowest rank
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    if (!program || *program == p) {
      programs.emplace_back(lowest_rank(plan.programs[p].ranks), p);
    }
  }
  std::sort(programs.begin(), programs.end());
  std::string text;
  for (const auto& [rank, p] : programs) {
    Line line(plan, plan.programs[p], stage_tag(plan, model), notation);
    PIPER_ASSIGN(const std::string cells, line.text());
    text += cells + "\n";
  }
  return text;
}

}  // namespace piper
