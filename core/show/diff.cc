#include "core/show/diff.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/ir/text_reader.h"
#include "core/plan/node_name.h"
#include "core/plan/text.h"
#include "core/show/wait_reason.h"
#include "core/verify/memory.h"

namespace piper {
namespace {

constexpr std::size_t kContext = 3;  // lines before a difference
constexpr std::size_t kWindow = 60;  // lines of each side that are compared closely
constexpr std::size_t kMostChanges = 16;

using Lines = std::vector<std::string>;

// The tasks of a stream as lines.
Lines task_lines(const NamedPlan& of, const NodeNames& names, std::uint32_t p,
                 const Stream& stream) {
  const Program& program = of.plan.programs[p];
  Lines lines;
  lines.reserve(stream.tasks.count);
  for (const Task& task : program.tasks_of(stream)) {
    std::string line = names.of(of.plan, p, task);
    if (task.bytes != Affine{}) {
      line += " bytes ";
      append_affine(line, task.bytes);
    }
    const char* before = " wait ";
    for (const Wait& wait : program.waits_of(task)) {
      line += before + std::string(wait.previous ? "^" : "") +
              names.of(of.plan, p, program.task(wait.task));
      before = ", ";
    }
    before = " free ";
    for (const BufferId buffer : program.frees_of(task)) {
      line += before + buffer_text(program.buffer(buffer));
      before = ", ";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// A shortest script from a to b: lines with ' ', '-' or '+' in front.
Lines edit_script(const Lines& a, const Lines& b) {
  const std::size_t n = a.size(), m = b.size();
  std::vector<std::size_t> common((n + 1) * (m + 1), 0);  // of a[i..] and b[j..]
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return common[i * (m + 1) + j];
  };
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m; j-- > 0;) {
      at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
  }
  Lines script;
  std::size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && a[i] == b[j]) {
      script.push_back(' ' + a[i]);
      ++i, ++j;
    } else if (j == m || (i < n && at(i + 1, j) >= at(i, j + 1))) {
      script.push_back('-' + a[i++]);
    } else {
      script.push_back('+' + b[j++]);
    }
  }
  return script;
}

Lines part(const Lines& lines, std::size_t begin, std::size_t count) {
  const std::size_t end = std::min(lines.size(), begin + count);
  return {lines.begin() + static_cast<std::ptrdiff_t>(std::min(begin, end)),
          lines.begin() + static_cast<std::ptrdiff_t>(end)};
}

// The first difference of two streams; "" where there is none.
std::string hunk(const Lines& a, const Lines& b, const std::string& where) {
  const auto first = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  if (first == a.size() && first == b.size()) {
    return "";
  }
  std::string text = "@@ " + where + ", task " + std::to_string(first + 1) + " @@\n";
  const std::size_t context = std::min(first, kContext);
  for (const std::string& line : part(a, first - context, context)) {
    text += ' ' + line + '\n';
  }
  std::size_t changes = 0, same = 0;
  for (const std::string& line : edit_script(part(a, first, kWindow), part(b, first, kWindow))) {
    same = line.front() == ' ' ? same + 1 : 0;
    changes += line.front() == ' ' ? 0 : 1;
    if (changes > kMostChanges || same > kContext) {
      return text + "...\n";
    }
    text += line + '\n';
  }
  const bool goes_on = std::max(a.size(), b.size()) > first + kWindow;
  return text + (goes_on ? "...\n" : "");
}

class Differ {
 public:
  Differ(const NamedPlan& one, const NamedPlan& other)
      : one_(one),
        other_(other),
        one_names_(one.plan, one.model),
        other_names_(other.plan, other.model) {}

  PlanDifference run(std::uint32_t only) {
    const std::string one = print(one_.plan, one_.model), other = print(other_.plan, other_.model);
    if (one == other) {
      return {};
    }
    text_ = "--- " + one_.name + " (plan " + hash(one_.plan, one_.model) + ")\n+++ " + other_.name +
            " (plan " + hash(other_.plan, other_.model) + ")\n";
    const std::string nameless = nameless_text(one_), other_nameless = nameless_text(other_);
    if (nameless == other_nameless) {
      return {text_ + "the same plan: only who says what in it differs, " + strategies(one_.plan) +
                  " and " + strategies(other_.plan) + '\n',
              true};
    }
    counts();
    const std::size_t programs = std::min(one_.plan.programs.size(), other_.plan.programs.size());
    for (std::uint32_t p = 0; p < programs; ++p) {
      if (only == kEveryProgram || only == p) {
        program(p);
      }
    }
    if (!has_hunk_ && only == kEveryProgram) {
      text_ += "same tasks; the first difference of the texts of the plans:\n" +
               first_lines(nameless, other_nameless);
    }
    return {std::move(text_), false};
  }

 private:
  static std::string nameless_text(const NamedPlan& of) {
    Plan plan = of.plan;
    plan.origins.clear();
    plan.origin_of_node.clear();
    return print(plan, of.model);
  }

  // "interleaved1f1b, zero"
  static std::string strategies(const Plan& plan) {
    std::vector<std::string> names;
    for (const Provenance& origin : plan.origins) {
      if (origin.plugin != "core" &&
          std::find(names.begin(), names.end(), origin.plugin) == names.end()) {
        names.push_back(origin.plugin);
      }
    }
    std::string text;
    for (const std::string& name : names) {
      text += (text.empty() ? "" : ", ") + name;
    }
    return text.empty() ? "no strategy" : text;
  }

  // The first line that differs, of both.
  static std::string first_lines(const std::string& one, const std::string& other) {
    const auto at = static_cast<std::size_t>(
        std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first - one.begin());
    const auto line = [at](const std::string& text) {
      const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
      const std::size_t begin = before == std::string::npos ? 0 : before + 1;
      return text.substr(begin, text.find('\n', begin) - begin);
    };
    return '-' + line(one) + "\n+" + line(other) + '\n';
  }

  void count(const std::string& what, std::int64_t one, std::int64_t other) {
    if (one != other) {
      text_ += what + ": " + std::to_string(one) + " -> " + std::to_string(other) + '\n';
    }
  }

  static std::int64_t tasks(const Plan& plan, Op op) {
    std::int64_t count = 0;
    for (const Program& program : plan.programs) {
      count += std::count_if(program.tasks.begin(), program.tasks.end(),
                             [&](const Task& task) { return task.op == op; });
    }
    return count;
  }

  static std::int64_t size(std::size_t count) { return static_cast<std::int64_t>(count); }

  void counts() {
    const Plan &a = one_.plan, &b = other_.plan;
    count("ranks", a.world, b.world);
    count("micro-batches", a.microbatches, b.microbatches);
    count("rows a step", a.global_rows, b.global_rows);
    count("programs", size(a.programs.size()), size(b.programs.size()));
    count("chunks", size(a.chunks.size()), size(b.chunks.size()));
    count("buckets", size(a.buckets.size()), size(b.buckets.size()));
    count("communicators", size(a.communicators.size()), size(b.communicators.size()));
    for (const OpTraits& of : kOpTraits) {
      count(std::string(of.name) + " tasks", tasks(a, of.op), tasks(b, of.op));
    }
    for (std::uint32_t p = 0; p < std::min(a.programs.size(), b.programs.size()); ++p) {
      count("peak bytes of program " + std::to_string(p), peak(one_, p), peak(other_, p));
    }
  }

  // Of the first rank, which has as many rows as any other.
  static std::int64_t peak(const NamedPlan& of, std::uint32_t program) {
    return peak_bytes(of.plan, of.model, program, 0);
  }

  static const Stream* stream_called(const Program& program, const std::string& name) {
    const auto found = std::find_if(program.streams.begin(), program.streams.end(),
                                    [&](const Stream& stream) { return stream.name == name; });
    return found == program.streams.end() ? nullptr : &*found;
  }

  void program(std::uint32_t p) {
    const Program &a = one_.plan.programs[p], &b = other_.plan.programs[p];
    for (const Stream& stream : a.streams) {
      streams(p, stream.name, &stream, stream_called(b, stream.name));
    }
    for (const Stream& stream : b.streams) {
      if (stream_called(a, stream.name) == nullptr) {
        streams(p, stream.name, nullptr, &stream);
      }
    }
  }

  void streams(std::uint32_t p, const std::string& name, const Stream* one, const Stream* other) {
    const std::string found =
        hunk(one != nullptr ? task_lines(one_, one_names_, p, *one) : Lines{},
             other != nullptr ? task_lines(other_, other_names_, p, *other) : Lines{},
             "program " + std::to_string(p) + ", stream " + name);
    has_hunk_ = has_hunk_ || !found.empty();
    text_ += found;
  }

  const NamedPlan &one_, &other_;
  NodeNames one_names_, other_names_;
  std::string text_;
  bool has_hunk_ = false;
};

}  // namespace

PlanDifference diff(const NamedPlan& one, const NamedPlan& other, std::uint32_t only) {
  return Differ(one, other).run(only);
}

}  // namespace piper
