#include "tests/support/unit_run.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

namespace piper::test {
namespace {

// What has happened when: 'F', 'I' (the gradients of inputs are there) and 'W' of a stage and
// micro-batch.
using Event = std::tuple<char, std::uint32_t, std::uint32_t>;

class Run {
 public:
  Run(const TableRows& rows, std::uint32_t stages, std::uint32_t microbatches)
      : stages_(stages), microbatches_(microbatches) {
    for (const std::vector<std::string>& row : rows) {
      rows_.emplace_back();
      for (const std::string& action : row) {
        rows_.back().push_back(parse_action(action));
        if (rows_.back().back().parts.empty() && result_.problem.empty()) {
          result_.problem = "'" + action + "' is no action";
        }
      }
    }
  }

  UnitRun run() {
    const std::size_t ranks = rows_.size();
    next_.assign(ranks, 0);
    clock_.assign(ranks, 0);
    result_.start.assign(ranks, {});
    live_.assign(ranks, 0);
    live_until_input_.assign(ranks, 0);
    first_.assign(ranks, 0);
    result_.busy.assign(ranks, 0);
    result_.span.assign(ranks, 0);
    result_.held.assign(ranks, 0);
    result_.held_until_input.assign(ranks, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks; ++r) {
        while (next_[r] < rows_[r].size() && step(r)) {
          moved = true;
        }
      }
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      if (next_[r] < rows_[r].size() && result_.problem.empty()) {
        result_.problem =
            "rank " + std::to_string(r) + " is stuck at action " + std::to_string(next_[r]);
      }
    }
    for (std::uint32_t s = 0; s < stages_; ++s) {
      for (std::uint32_t m = 0; m < microbatches_; ++m) {
        if (end_.count({'W', s, m}) == 0 && result_.problem.empty()) {
          result_.problem =
              "stage " + std::to_string(s) + " micro-batch " + std::to_string(m) + " is left out";
        }
      }
    }
    return result_;
  }

 private:
  // What a part waits for.
  std::vector<Event> needs(const TableAction::Part& part) const {
    switch (part.pass) {
      case 'F':
        return part.stage == 0 ? std::vector<Event>{}
                               : std::vector<Event>{{'F', part.stage - 1, part.microbatch}};
      case 'W':
        return {{'I', part.stage, part.microbatch}};
      default: {
        std::vector<Event> events{{'F', part.stage, part.microbatch}};
        if (part.stage + 1 < stages_) {
          events.push_back({'I', part.stage + 1, part.microbatch});
        }
        return events;
      }
    }
  }

  bool step(std::size_t rank) {
    const TableAction& action = rows_[rank][next_[rank]];
    std::uint32_t start = clock_[rank];
    for (const TableAction::Part& part : action.parts) {
      for (const Event& event : needs(part)) {
        const auto end = end_.find(event);
        if (end == end_.end()) {
          return false;
        }
        start = std::max(start, end->second);
      }
    }
    std::uint32_t cost = 0;
    for (const TableAction::Part& part : action.parts) {
      cost += part.pass == 'B' ? 2 : 1;
    }
    for (const TableAction::Part& part : action.parts) {
      for (const Event& event : needs(part)) {
        result_.messages += rank_[event] != rank ? 1 : 0;
      }
      finish(part, rank, start + cost);
    }
    first_[rank] = next_[rank] == 0 ? start : first_[rank];
    result_.start[rank].push_back(start);
    result_.busy[rank] += cost;
    result_.span[rank] = start + cost - first_[rank];
    clock_[rank] = start + cost;
    result_.makespan = std::max(result_.makespan, clock_[rank]);
    ++next_[rank];
    return true;
  }

  void finish(const TableAction::Part& part, std::size_t rank, std::uint32_t end) {
    const auto happens = [&](char event) {
      const Event key{event, part.stage, part.microbatch};
      if (!end_.emplace(key, end).second && result_.problem.empty()) {
        result_.problem = "stage " + std::to_string(part.stage) + " runs micro-batch " +
                          std::to_string(part.microbatch) + " twice";
      }
      rank_[key] = rank;
    };
    if (part.pass == 'F') {
      happens('F');
      ++live_[rank];
      ++live_until_input_[rank];
    }
    if (part.pass == 'B' || part.pass == 'I') {
      happens('I');
      --live_until_input_[rank];
    }
    if (part.pass == 'B' || part.pass == 'W') {
      happens('W');
      --live_[rank];
    }
    result_.held[rank] = std::max(result_.held[rank], live_[rank]);
    result_.held_until_input[rank] =
        std::max(result_.held_until_input[rank], live_until_input_[rank]);
  }

  std::uint32_t stages_, microbatches_;
  std::vector<std::vector<TableAction>> rows_;
  std::map<Event, std::uint32_t> end_;
  std::map<Event, std::size_t> rank_;
  std::vector<std::size_t> next_;
  std::vector<std::uint32_t> clock_, live_, live_until_input_, first_;
  UnitRun result_;
};

}  // namespace

TableAction parse_action(const std::string& text) {
  TableAction::Part first, second{'B', 0, 0};
  char pass[2] = "";
  int end = 0;
  const auto whole = [&] { return end == static_cast<int>(text.size()); };
  if (std::sscanf(text.c_str(), "%u%1[FBIW]%u%n", &first.stage, pass, &first.microbatch, &end) ==
          3 &&
      whole()) {
    first.pass = pass[0];
    return {{first}};
  }
  if (std::sscanf(text.c_str(), "(%uF%u;%uB%u)OVERLAP_F_B%n", &first.stage, &first.microbatch,
                  &second.stage, &second.microbatch, &end) == 4 &&
      whole()) {
    return {{first, second}};
  }
  return {};
}

std::uint32_t UnitRun::most_held() const {
  return held.empty() ? 0 : *std::max_element(held.begin(), held.end());
}

std::string picture(const TableRows& rows, std::uint32_t stages, std::uint32_t microbatches) {
  const UnitRun ran = run_at_unit_cost(rows, stages, microbatches);
  std::string text;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    std::vector<std::string> columns(ran.makespan, ".");
    std::uint32_t first = stages;  // the rank's first stage
    for (const std::string& action : rows[rank]) {
      first = std::min(first, parse_action(action).parts.front().stage);
    }
    for (std::size_t i = 0; i < rows[rank].size(); ++i) {
      std::string name;
      std::uint32_t cost = 0;
      for (const TableAction::Part& part : parse_action(rows[rank][i]).parts) {
        const char pass =
            part.stage == first ? part.pass : static_cast<char>(part.pass - 'A' + 'a');
        name += (name.empty() ? "" : "+") + std::string(1, pass) + std::to_string(part.microbatch);
        cost += part.pass == 'B' ? 2 : 1;
      }
      const std::uint32_t start = ran.start[rank][i];
      columns[start] = name;
      std::fill(columns.begin() + start + 1, columns.begin() + start + cost, "");
      if (name.size() < 4 && cost > 1) {
        columns[start] += " -";
      }
    }
    std::string line;
    for (std::size_t t = 0; t < columns.size(); ++t) {
      line.resize(std::max(line.size(), 3 * t), ' ');
      line += columns[t];
    }
    text += line + "\n";
  }
  return text;
}

UnitRun run_at_unit_cost(const TableRows& rows, std::uint32_t stages, std::uint32_t microbatches) {
  return Run(rows, stages, microbatches).run();
}

}  // namespace piper::test
