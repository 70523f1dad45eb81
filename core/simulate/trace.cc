#include "core/simulate/trace.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/plan/node_name.h"
#include "core/show/json_writer.h"

namespace piper {
namespace {

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const Plan& plan, const ModelGraph& model, const Spans& times,
              double microseconds, bool in_units)
      : out_(out),
        plan_(plan),
        names_(plan, model),
        times_(times),
        microseconds_(microseconds),
        in_units_(in_units) {}

  void run() {
    out_.begin_object().field("displayTimeUnit", "ms");
    if (in_units_) {
      out_.key("otherData").begin_object().field("time", "units").end_object();
    }
    out_.key("traceEvents").begin_array();
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      threads(p);
      for (const Task& task : plan_.programs[p].tasks) {
        event(p, task);
      }
    }
    out_.end_array().end_object().finish();
  }

 private:
  JsonWriter& begin(std::string_view phase, std::string_view name, std::uint32_t p) {
    return out_.new_line().begin_object().field("ph", phase).field("name", name).field("pid", p);
  }

  void threads(std::uint32_t p) {
    const Program& program = plan_.programs[p];
    std::string ranks = "rank " + std::to_string(program.ranks.front());
    if (program.ranks.size() > 1) {
      ranks += " and " + std::to_string(program.ranks.size() - 1) + " more";
    }
    begin("M", "process_name", p).key("args").begin_object().field("name", ranks);
    out_.end_object().end_object();
    for (std::uint32_t s = 0; s < program.streams.size(); ++s) {
      begin("M", "thread_name", p).field("tid", s);
      out_.key("args").begin_object().field("name", program.streams[s].name);
      out_.end_object().end_object();
    }
  }

  void event(std::uint32_t p, const Task& task) {
    const auto t = static_cast<std::size_t>(&task - plan_.programs[p].tasks.data());
    const TimeSpan span = times_[p][t];
    begin("X", names_.of(plan_, p, task), p).field("tid", index(task.stream));
    out_.field("cat", to_string(task.op));
    time("ts", span.begin);
    time("dur", span.end - span.begin);
    out_.end_object();
    if (is_point_to_point(task.op)) {
      const bool sends = traits(task.op).direction == Direction::out;
      begin(sends ? "s" : "f", "message", p).field("tid", index(task.stream));
      out_.field("cat", "message").field("id", std::min(index(task.node), index(task.peer)));
      if (!sends) {
        out_.field("bp", "e");
      }
      time("ts", span.begin);
      out_.end_object();
    }
  }

  void time(std::string_view key, std::uint64_t ticks) {
    char text[48];
    std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ticks) * microseconds_);
    out_.key(key).raw(text);
  }

  JsonWriter out_;
  const Plan& plan_;
  NodeNames names_;
  const Spans& times_;
  double microseconds_;
  bool in_units_;
};

}  // namespace

void write_trace(std::ostream& out, const Plan& plan, const ModelGraph& model, const Spans& times,
                 double microseconds, bool in_units) {
  TraceWriter(out, plan, model, times, microseconds, in_units).run();
}

}  // namespace piper
