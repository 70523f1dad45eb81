// What a run says as it goes: whole lines, through spdlog, as they are.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

namespace spdlog {
class logger;
}

namespace piper {

enum class LogLevel : std::uint8_t { info, warning, error };

// Of the process: the program and the runtime that it opens share it. Holds for logs that are made
// afterwards; before, all is said.
void set_log_level(LogLevel least);

// Any thread. Where a line goes is a sink of the logger: further ones (a file a rank) are added in
// the constructor.
class LineLog {
 public:
  explicit LineLog(std::FILE* to);

  // Writes the text and a line break, at once; nothing where the level is below the process's.
  void say(LogLevel level, std::string_view text);

 private:
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace piper
