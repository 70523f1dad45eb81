#include "runtime/metrics/metrics_file.h"

#include <nlohmann/json.hpp>

namespace piper {

std::string to_json(const StepRecord& record) {
  nlohmann::ordered_json json;
  json["step"] = record.step;
  json["loss"] = record.loss ? nlohmann::ordered_json(*record.loss) : nlohmann::ordered_json();
  if (record.held_out_loss) {
    json["held_out_loss"] = *record.held_out_loss;
  }
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
  if (!path.empty()) {
    PIPER_ASSIGN(file.lines_,
                 LogFile::create(path, {.code = "metrics.unwritable", .where = where}));
  }
  return file;
}

Status MetricsFile::write(const StepRecord& record) {
  return lines_ ? lines_->write_line(to_json(record)) : Status();
}

Status MetricsFile::flush() {
  return lines_ ? lines_->flush() : Status();
}

}  // namespace piper
