// A simulation in words and in JSON.
#include <algorithm>
#include <cstdio>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/table.h"
#include "core/plan/node_name.h"
#include "core/show/json_writer.h"
#include "core/simulate/analysis.h"
#include "core/simulate/plan_grid.h"

namespace piper {
namespace {

constexpr std::size_t kMostGaps = 8, kMostPath = 12;

std::string fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

class Writer {
 public:
  Writer(const Plan& plan, const ModelGraph& model, const Simulation& run, const Analysis& analysis,
         const TimeUnit& unit)
      : plan_(plan), run_(run), analysis_(analysis), unit_(unit), names_(plan, model) {}

  std::string text() const {
    std::string out = "step " + time(analysis_.makespan) + ' ' + unit_.name + ", bubble " +
                      percent(analysis_.bubble) + "\n\n";
    out += programs() + '\n' + path() + '\n' + gaps();
    return out;
  }

  void json(std::ostream& stream) const {
    JsonWriter out(stream);
    out.begin_object().field("format", "piper-simulation-1").field("unit", unit_.name);
    number(out, "makespan", analysis_.makespan);
    out.key("bubble").raw(fixed(analysis_.bubble, 6));
    out.key("programs").begin_array();
    for (std::uint32_t p = 0; p < analysis_.programs.size(); ++p) {
      out.new_line();
      program_json(out, p);
    }
    out.end_array().key("critical_path").begin_array();
    for (const TaskOf& at : analysis_.critical_path) {
      out.new_line().begin_object().field("task", name(at));
      span_json(out, run_.times[at.program][index(at.task)].begin,
                run_.times[at.program][index(at.task)].end);
      out.end_object();
    }
    out.end_array().end_object().finish();
  }

 private:
  double value(std::uint64_t ticks) const { return static_cast<double>(ticks) / unit_.ticks; }
  std::string time(std::uint64_t ticks) const { return fixed(value(ticks), 3); }
  static std::string percent(double share) { return fixed(100 * share, 1) + " %"; }
  std::string name(const TaskOf& at) const {
    return names_.of(plan_, at.program, plan_.programs[at.program].task(at.task));
  }

  std::string programs() const {
    std::vector<std::vector<std::string>> rows{
        {"program", "", "busy", "bubble", "exposed", "peak memory", "planned"}};
    for (std::uint32_t p = 0; p < analysis_.programs.size(); ++p) {
      const ProgramReport& own = analysis_.programs[p];
      rows.push_back({std::to_string(p), rank_list(plan_.programs[p].ranks, true), time(own.busy),
                      percent(own.bubble), time(own.exposed), human_bytes(own.peak_bytes),
                      human_bytes(own.bound_bytes)});
    }
    return table(rows);
  }

  // What the longest chain is made of, and its last links.
  std::string path() const {
    std::map<Op, std::uint64_t> of_op;
    for (const TaskOf& at : analysis_.critical_path) {
      const auto& span = run_.times[at.program][index(at.task)];
      of_op[plan_.programs[at.program].task(at.task).op] += span.end - span.begin;
    }
    std::string out = "critical path:";
    for (const auto& [op, ticks] : of_op) {
      out += (out.back() == ':' ? " " : ", ") + std::string(short_name(op)) + ' ' + time(ticks);
    }
    out += "\n ";
    const std::size_t count = analysis_.critical_path.size();
    if (count > kMostPath) {
      out += " ... (" + std::to_string(count - kMostPath) + " before)";
    }
    for (std::size_t i = count - std::min(count, kMostPath); i < count; ++i) {
      out += ' ' + name(analysis_.critical_path[i]);
    }
    return out + '\n';
  }

  std::string gaps() const {
    std::vector<std::pair<std::uint32_t, const Gap*>> longest;
    for (std::uint32_t p = 0; p < analysis_.programs.size(); ++p) {
      for (const Gap& gap : analysis_.programs[p].gaps) {
        if (valid(gap.next)) {
          longest.emplace_back(p, &gap);
        }
      }
    }
    if (longest.empty()) {
      return "no idle gaps before the last computation of a rank\n";
    }
    std::stable_sort(longest.begin(), longest.end(), [](const auto& a, const auto& b) {
      return a.second->length() > b.second->length();
    });
    const std::size_t count = longest.size();
    longest.resize(std::min(count, kMostGaps));
    std::string out = "longest idle gaps, of " + std::to_string(count) + ":\n";
    for (const auto& [p, gap] : longest) {
      out += "  " + rank_list(plan_.programs[p].ranks, true) + "  " + time(gap->begin) + " to " +
             time(gap->end) + "  before " + name({p, gap->next});
      if (valid(gap->blame.task)) {
        out += ", which waits for " + name(gap->blame);
      }
      if (gap->exposed > 0) {
        out += " (" + time(gap->exposed) + " of it communication)";
      }
      out += '\n';
    }
    return out;
  }

  // A number with a fraction, as JSON has it.
  void number(JsonWriter& out, std::string_view key, std::uint64_t ticks) const {
    out.key(key).raw(fixed(value(ticks), 6));
  }
  void span_json(JsonWriter& out, std::uint64_t begin, std::uint64_t end) const {
    number(out, "begin", begin);
    number(out, "end", end);
  }

  void program_json(JsonWriter& out, std::uint32_t p) const {
    const ProgramReport& own = analysis_.programs[p];
    out.begin_object().key("ranks").begin_array();
    for (const std::uint32_t rank : plan_.programs[p].ranks) {
      out.value(rank);
    }
    out.end_array();
    number(out, "busy", own.busy);
    number(out, "exposed", own.exposed);
    out.key("bubble").raw(fixed(own.bubble, 6));
    out.field("peak_bytes", own.peak_bytes).field("planned_peak_bytes", own.bound_bytes);
    out.key("gaps").begin_array();
    for (const Gap& gap : own.gaps) {
      out.begin_object();
      span_json(out, gap.begin, gap.end);
      number(out, "exposed", gap.exposed);
      if (valid(gap.next)) {
        out.field("before", name({p, gap.next}));
      }
      if (valid(gap.blame.task)) {
        out.field("waits_for", name(gap.blame));
      }
      out.end_object();
    }
    out.end_array().end_object();
  }

  const Plan& plan_;
  const Simulation& run_;
  const Analysis& analysis_;
  const TimeUnit& unit_;
  NodeNames names_;
};

}  // namespace

std::string describe(const Plan& plan, const ModelGraph& model, const Simulation& run,
                     const Analysis& analysis, const TimeUnit& unit) {
  return Writer(plan, model, run, analysis, unit).text();
}

void write_json(std::ostream& out, const Plan& plan, const ModelGraph& model, const Simulation& run,
                const Analysis& analysis, const TimeUnit& unit) {
  Writer(plan, model, run, analysis, unit).json(out);
}

}  // namespace piper
