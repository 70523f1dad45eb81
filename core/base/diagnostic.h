// What a user is told. A mistake of theirs is a Diagnostic in an Expected; a mistake of ours is
// PIPER_CHECK.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace piper {

// A place in a file. Lines and columns count from 1, columns in code points; 0 = not known.
struct Location {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  bool known() const { return !file.empty(); }
  bool operator==(const Location&) const = default;
};

// `file`, `file:line` or `file:line:column`, as far as it is known.
std::string to_string(const Location& where);

enum class Severity : std::uint8_t { error, warning, note };

// One message: lower case, no final full stop, facts included ("expected X, got Y"), with the
// nearest known name where a name is unknown. `code` is stable and documented
// ("config.unknown_key").
struct Diagnostic {
  Severity severity = Severity::error;
  std::string code;
  std::string message;
  Location where;
  std::vector<Diagnostic> notes;  // further places, printed after it

  Diagnostic& note(std::string text, Location at = {});
};

Diagnostic error(std::string code, std::string message, Location where = {});
Diagnostic warning(std::string code, std::string message, Location where = {});

// `job.toml:9:3: error: expected X, got Y [code]`, then a line for each note. No final newline.
std::string to_string(const Diagnostic& diagnostic);

// One or more errors, in the order in which they were found. Never empty inside an Expected.
using Diagnostics = std::vector<Diagnostic>;
std::string to_string(const Diagnostics& diagnostics);

template <typename T>
using Expected = tl::expected<T, Diagnostics>;
using Status = Expected<void>;

inline tl::unexpected<Diagnostics> fail(Diagnostic diagnostic) {
  return tl::unexpected<Diagnostics>(Diagnostics{std::move(diagnostic)});
}
inline tl::unexpected<Diagnostics> fail(Diagnostics diagnostics) {
  return tl::unexpected<Diagnostics>(std::move(diagnostics));
}

// The known name nearest to `name` (edit distance at most a third of its length, at least 2), or
// "".
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// ` (did you mean 'seq_len'?)` or, where nothing is near, ` (known: a, b, c)`. "" when nothing is
// known.
std::string suggest(std::string_view name, const std::vector<std::string>& known);

// PIPER_TRY(f()): returns f's errors. PIPER_ASSIGN(const auto x, f()): the same, else x is its
// value.
#define PIPER_CONCAT_(a, b) a##b
#define PIPER_CONCAT(a, b) PIPER_CONCAT_(a, b)
#define PIPER_TRY(expression)                                                                \
  if (auto PIPER_CONCAT(status_, __LINE__) = (expression); !PIPER_CONCAT(status_, __LINE__)) \
      [[unlikely]] {                                                                         \
    return ::piper::fail(std::move(PIPER_CONCAT(status_, __LINE__)).error());                \
  }
#define PIPER_ASSIGN(declaration, expression)                                   \
  auto PIPER_CONCAT(expected_, __LINE__) = (expression);                        \
  if (!PIPER_CONCAT(expected_, __LINE__)) [[unlikely]] {                        \
    return ::piper::fail(std::move(PIPER_CONCAT(expected_, __LINE__)).error()); \
  }                                                                             \
  declaration = std::move(*PIPER_CONCAT(expected_, __LINE__))

// Our own mistake: prints file, line, condition and text, and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& text);
#define PIPER_CHECK(condition, text)                                 \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      ::piper::check_failed(__FILE__, __LINE__, #condition, (text)); \
    }                                                                \
  } while (false)

}  // namespace piper
