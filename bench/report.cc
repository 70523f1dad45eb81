#include "bench/report.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>

namespace piper::bench {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void print(const std::string& name, const std::string& metric, double value, const char* format,
           const std::string& target) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  std::printf("bench %s %s = %s%s\n", name.c_str(), metric.c_str(), text,
              target.empty() ? "" : (" (target " + target + ")").c_str());
  std::fflush(stdout);
}

void parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& end) {  // --help is one too
    std::exit(app.exit(end) == 0 ? 0 : 2);
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

void run_ahead_while_sleeping() {
  const sched_param priority{10};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
    std::fprintf(stderr, "not allowed to run ahead of other programs: they will show\n");
  }
}

std::string output_of(const std::string& command) {
  std::string text;
  std::array<char, 4096> buffer;
  std::FILE* pipe = popen(command.c_str(), "r");
  while (pipe != nullptr && std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    text += buffer.data();
  }
  if (pipe == nullptr || pclose(pipe) != 0) {
    std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::exit(1);
  }
  return text;
}

std::vector<double> numbers(const std::string& text) {
  std::vector<double> values;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double value = std::strtod(at, &end);
    if (end == at) {
      return values;
    }
    values.push_back(value);
  }
}

Scratch::Scratch() {
  std::string pattern = (std::filesystem::temp_directory_path() / "piper_bench_XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Scratch::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name)) << text;
  return path(name);
}

}  // namespace piper::bench
