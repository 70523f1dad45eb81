#include "core/base/diagnostic.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace piper {
namespace {

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

// Control characters of what a message quotes, but for line breaks and tabs, as \x1b: a terminal
// would obey them.
std::string printable(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool is_c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (is_c1 || byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", unsigned{is_c1 ? next : byte});
      out += code;
      i += is_c1 ? 1 : 0;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const Location& where) {
  std::string text = where.file;
  if (where.line > 0) {
    text += ':' + std::to_string(where.line);
  }
  if (where.line > 0 && where.column > 0) {
    text += ':' + std::to_string(where.column);
  }
  return text;
}

Diagnostic& Diagnostic::note(std::string text, Location at) {
  notes.push_back({Severity::note, "", std::move(text), std::move(at), {}});
  return *this;
}

Diagnostic error(std::string code, std::string message, Location where) {
  return {Severity::error, std::move(code), std::move(message), std::move(where), {}};
}

Diagnostic warning(std::string code, std::string message, Location where) {
  return {Severity::warning, std::move(code), std::move(message), std::move(where), {}};
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  if (diagnostic.where.known()) {
    text += printable(to_string(diagnostic.where)) + ": ";
  }
  text += name(diagnostic.severity);
  text += ": " + printable(diagnostic.message);
  if (!diagnostic.code.empty()) {
    text += " [" + diagnostic.code + "]";
  }
  for (const Diagnostic& note : diagnostic.notes) {
    text += '\n' + to_string(note);
  }
  return text;
}

std::string to_string(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    text += (text.empty() ? "" : "\n") + to_string(diagnostic);
  }
  return text;
}

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  const std::size_t limit = std::max<std::size_t>(2, name.size() / 3);
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggest(std::string_view name, const std::vector<std::string>& known) {
  if (const std::string near = nearest(name, known); !near.empty()) {
    return " (did you mean '" + near + "'?)";
  }
  std::string list;
  for (const std::string& candidate : known) {
    list += (list.empty() ? "" : ", ") + candidate;
  }
  return list.empty() ? "" : " (known: " + list + ")";
}

void check_failed(const char* file, int line, const char* condition, const std::string& text) {
  std::fprintf(stderr, "%s:%d: internal error: %s: %s\nThis is a fault in Piper, not in the job.\n",
               file, line, condition, text.c_str());
  std::abort();
}

}  // namespace piper
