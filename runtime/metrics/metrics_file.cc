#include "runtime/metrics/metrics_file.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace piper {

std::string to_json(const StepRecord& record) {
  nlohmann::ordered_json json;
  json["step"] = record.step;
  json["loss"] = record.loss;
  json["grad_norm"] = record.grad_norm;
  json["lr"] = record.lr;
  json["tokens_per_second"] = record.tokens_per_second();
  json["step_seconds"] = record.seconds;
  json["bubble"] = record.bubble;
  json["peak_bytes"] = record.peak_bytes;
  json["planned_peak_bytes"] = record.planned_peak_bytes;
  return json.dump();
}

Expected<MetricsFile> MetricsFile::open(const std::string& path, const Location& where) {
  MetricsFile file;
  file.path_ = path;
  if (!path.empty()) {
    file.stream_.open(path, std::ios::trunc);
    if (!file.stream_) {
      return fail(error("metrics.unwritable", path + ": " + std::strerror(errno), where));
    }
  }
  return file;
}

Status MetricsFile::write(const StepRecord& record) {
  if (path_.empty()) {
    return {};
  }
  stream_ << to_json(record) << '\n' << std::flush;
  if (!stream_) {
    return fail(error("metrics.unwritable", path_ + ": " + std::strerror(errno)));
  }
  return {};
}

}  // namespace piper
