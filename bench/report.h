// What the benchmarks share: their lines, their statistics, their files.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/diagnostic.h"

namespace CLI {
class App;
}

namespace piper::bench {

double now();  // seconds, steady

// `bench NAME METRIC = VALUE (target TARGET)`; `format` is printf's for a double.
void print(const std::string& name, const std::string& metric, double value, const char* format,
           const std::string& target = "");

// Reads the command line; a mistake in it ends the program, with how it is used.
void parse(CLI::App& app, int argc, char** argv);

double median(std::vector<double> values);
double least(const std::vector<double>& values);

// FIFO priority for this thread and those that it makes, where that is allowed, so that other
// programs delay no thread that has slept enough. For threads that mostly sleep.
void run_ahead_while_sleeping();

// What a command prints, and the numbers in such a text. A command that fails ends the program.
std::string output_of(const std::string& command);
std::vector<double> numbers(const std::string& text);

// The value, or the end of the program with the error.
template <typename T>
T must(Expected<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
    std::exit(1);
  }
  return std::move(*result);
}

// A folder of our own, which goes with the object.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const;  // its path

 private:
  std::filesystem::path path_;
};

}  // namespace piper::bench
