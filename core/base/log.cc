#include "core/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace piper {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::off;
}

}  // namespace

void set_log_level(LogLevel least) {
  spdlog::set_level(to_spdlog(least));
}

LineLog::LineLog(std::FILE* to) {
  using Sink = spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex>;
  logger_ = std::make_shared<spdlog::logger>("piper", std::make_shared<Sink>(to));
  logger_->set_pattern("%v");
  logger_->set_level(spdlog::get_level());
}

void LineLog::say(LogLevel level, std::string_view text) {
  logger_->log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace piper
