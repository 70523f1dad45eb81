#include "core/simulate/compare_traces.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/json_reason.h"

namespace piper {
namespace {

using Json = nlohmann::json;

struct Event {
  std::string kind;
  double begin = 0, length = 0;  // microseconds
};
using Events = std::map<std::string, Event>;  // by name, which is a task's alone

struct Parsed {
  Events events;
  bool in_units = false;  // a unit is drawn as a millisecond
};

Diagnostic no_trace(const TraceText& trace, const std::string& expected, Location where = {}) {
  if (where.file.empty()) {
    where.file = trace.file;
  }
  return error("trace.file", "expected " + expected + ", as `piper simulate --trace` writes it",
               std::move(where));
}

Location place(const TraceText& trace, std::size_t byte) {
  const std::string_view before = trace.text.substr(0, byte > 0 ? byte - 1 : 0);
  const std::size_t line = before.rfind('\n');
  return {std::string(trace.file),
          static_cast<std::uint32_t>(1 + std::count(before.begin(), before.end(), '\n')),
          static_cast<std::uint32_t>(before.size() - (line == before.npos ? 0 : line + 1) + 1)};
}

template <typename T>
bool read(const Json& event, const char* key, T& out) {
  const auto found = event.find(key);
  if constexpr (std::is_same_v<T, std::string>) {
    if (found == event.end() || !found->is_string()) {
      return false;
    }
  } else if (found == event.end() || !found->is_number()) {
    return false;
  }
  out = found->get<T>();
  return true;
}

Expected<Parsed> parse(const TraceText& trace) {
  Json root;
  try {
    root = Json::parse(trace.text);
  } catch (const Json::parse_error& wrong) {
    Diagnostic no_json = no_trace(trace, "a trace in JSON", place(trace, wrong.byte));
    no_json.message += ": " + json_reason(wrong.what());
    return fail(std::move(no_json));
  }
  const auto list = root.is_object() ? root.find("traceEvents") : root.end();
  if (!root.is_object() || list == root.end() || !list->is_array()) {
    return fail(no_trace(trace, "an object with traceEvents"));
  }
  Parsed parsed;
  const auto other = root.find("otherData");
  std::string time;
  parsed.in_units =
      other != root.end() && other->is_object() && read(*other, "time", time) && time == "units";
  Events& events = parsed.events;
  for (const Json& item : *list) {
    std::string phase, name;
    Event event;
    if (!item.is_object() || !read(item, "ph", phase)) {
      return fail(no_trace(trace, "events with a phase"));
    }
    if (phase != "X") {
      continue;
    }
    if (!read(item, "name", name) || !read(item, "cat", event.kind) ||
        !read(item, "ts", event.begin) || !read(item, "dur", event.length)) {
      return fail(no_trace(trace, "tasks with name, cat, ts and dur"));
    }
    if (!events.emplace(name, event).second) {
      return fail(no_trace(trace, "each task once, got '" + name + "' twice,"));
    }
  }
  if (events.empty()) {
    return fail(no_trace(trace, "tasks"));
  }
  return parsed;
}

// Names the first tasks of `these` that are not in `those`.
std::string lacking(const Events& these, const Events& those) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, event] : these) {
    const auto other = those.find(name);
    if (other == those.end() || other->second.kind != event.kind) {
      text += ++count <= kNamed ? (count > 1 ? ", '" : "'") + name + "'" : "";
    }
  }
  return count > kNamed ? text + " and " + std::to_string(count - kNamed) + " more" : text;
}

double makespan(const Events& events) {
  double end = 0;
  double begin = events.begin()->second.begin;
  for (const auto& [name, event] : events) {
    begin = std::min(begin, event.begin);
    end = std::max(end, event.begin + event.length);
  }
  return end - begin;
}

std::string line(const std::string& kind, const std::string& count, double predicted,
                 double measured) {
  char numbers[96], error[32] = "-";
  if (measured > 0) {
    std::snprintf(error, sizeof error, "%+.1f %%", (predicted / measured - 1) * 100);
  }
  std::snprintf(numbers, sizeof numbers, "%-16s %7s %14.4f %14.4f %12s\n", kind.c_str(),
                count.c_str(), predicted * 1e-3, measured * 1e-3, error);
  return numbers;
}

}  // namespace

Expected<std::string> compare_traces(const TraceText& predicted, const TraceText& measured) {
  PIPER_ASSIGN(const Parsed first, parse(predicted));
  PIPER_ASSIGN(const Parsed second, parse(measured));
  if (first.in_units != second.in_units) {
    const TraceText& units = first.in_units ? predicted : measured;
    Diagnostic differ =
        error("trace.units", "expected two traces in milliseconds, got one in units",
              Location{std::string(units.file), 0, 0});
    differ.note(
        "`piper simulate --costs analytical --trace=FILE` predicts milliseconds, and so does "
        "`--costs measured` with a file of `piper train --costs=FILE`");
    return fail(std::move(differ));
  }
  const Events &expected = first.events, &got = second.events;
  const std::string only_expected = lacking(expected, got), only_got = lacking(got, expected);
  if (!only_expected.empty() || !only_got.empty()) {
    Diagnostic differ = error("trace.differ", "expected two traces of one plan",
                              Location{std::string(measured.file), 0, 0});
    if (!only_expected.empty()) {
      differ.note("only " + std::string(predicted.file) + " has " + only_expected);
    }
    if (!only_got.empty()) {
      differ.note("only " + std::string(measured.file) + " has " + only_got);
    }
    return fail(std::move(differ));
  }

  struct Sum {
    std::size_t count = 0;
    double predicted = 0, measured = 0;
  };
  std::map<std::string, Sum> kinds;
  for (const auto& [name, event] : expected) {
    Sum& sum = kinds[event.kind];
    ++sum.count;
    sum.predicted += event.length;
    sum.measured += got.at(name).length;
  }
  std::string text = first.in_units
                         ? "task               tasks          units          units        error\n"
                         : "task               tasks   predicted ms    measured ms        error\n";
  for (const auto& [kind, sum] : kinds) {
    const auto count = static_cast<double>(sum.count);
    text += line(kind, std::to_string(sum.count), sum.predicted / count, sum.measured / count);
  }
  return text + line("step", "", makespan(expected), makespan(got));
}

}  // namespace piper
