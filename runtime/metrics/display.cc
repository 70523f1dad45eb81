#include "runtime/metrics/display.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace piper {
namespace {

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[128];
  const int length = std::snprintf(text, sizeof text, pattern, values...);
  return std::string(text, static_cast<std::size_t>(std::clamp<int>(length, 0, sizeof text - 1)));
}

double mebibytes(const std::vector<std::int64_t>& bytes) {
  const auto most = std::max_element(bytes.begin(), bytes.end());
  return most == bytes.end() ? 0 : static_cast<double>(*most) / (1 << 20);
}

// Of the rank that held most beyond what was planned for it; empty where none did.
std::string beyond_plan(const StepRecord& record) {
  double most = 0;
  std::size_t worst = 0;
  for (std::size_t rank = 0; rank < record.peak_bytes.size(); ++rank) {
    const double beyond = static_cast<double>(record.peak_bytes[rank]) /
                              static_cast<double>(record.planned_peak_bytes[rank]) -
                          1;
    if (beyond > most) {
      most = beyond;
      worst = rank;
    }
  }
  return most > 0 ? format("  rank %zu held %.2g%% more than planned", worst, most * 100) : "";
}

std::string duration(double seconds) {
  return seconds < 1 ? format("%.1f ms", seconds * 1e3) : format("%.2f s", seconds);
}

std::string loss_text(const StepRecord& record) {
  return record.loss ? format("%.4f", *record.loss) : "-";
}

std::string skipped(const StepRecord& record) {
  return record.updated ? ""
         : record.loss  ? "  not finite: update skipped"
                        : "  no label counts: no update";
}

std::string clock(double seconds) {
  const auto whole = static_cast<long long>(std::lround(seconds));
  return whole < 3600 ? format("%lld:%02lld", whole / 60, whole % 60)
                      : format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (number < 0 ? 1 : 0);
       at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string step_line(const StepRecord& record) {
  return format("step %lld  loss ", static_cast<long long>(record.step)) + loss_text(record) +
         format("  norm %.3g  lr %.1e  ", record.grad_norm, record.lr) + duration(record.seconds) +
         "  " + grouped(std::llround(record.tokens_per_second())) + " tok/s  " +
         format("bubble %.0f%%  peak %.1f MiB (planned %.1f)", record.bubble * 100,
                mebibytes(record.peak_bytes), mebibytes(record.planned_peak_bytes)) +
         beyond_plan(record) + skipped(record);
}

std::string progress_line(const StepRecord& record, std::int64_t steps, double seconds_a_step) {
  return format("%lld/%lld  loss ", static_cast<long long>(record.step),
                static_cast<long long>(steps)) +
         loss_text(record) + "  " + grouped(std::llround(record.tokens_per_second())) + " tok/s  " +
         clock(seconds_a_step * static_cast<double>(steps - record.step)) + " left";
}

std::string evaluation_line(std::int64_t step, std::int64_t batch, std::int64_t batches,
                            double loss) {
  return format("step %lld: held out %lld/%lld", static_cast<long long>(step),
                static_cast<long long>(batch), static_cast<long long>(batches)) +
         (batch > 0 ? format("  loss %.4f", loss) : "");
}

bool is_terminal(std::FILE* file) {
  const char* const kind = std::getenv("TERM");
  return isatty(fileno(file)) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

void Display::line(const std::string& text) {
  clear();
  lines_.say(LogLevel::info, text);
}

void Display::remark(const Diagnostic& diagnostic) {
  clear();
  remarks_.say(LogLevel::warning, to_string(diagnostic));
}

void Display::progress(const std::string& text, bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (progress_ == nullptr || (drawn_ && !now && time - last_ < std::chrono::milliseconds(100))) {
    return;
  }
  last_ = time;
  drawn_ = true;
  std::fprintf(progress_, "\r\x1b[K%s", text.c_str());
  std::fflush(progress_);
}

void Display::clear() {
  if (drawn_) {
    std::fputs("\r\x1b[K", progress_);
    std::fflush(progress_);
    drawn_ = false;
  }
}

}  // namespace piper
