#include "tests/support/fault_run.h"

#include <unistd.h>

#include <filesystem>

#include "tests/support/faulty_files.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> environment_of(const WritingRun& run) {
  std::map<std::string, std::string> environment = run.environment;
  environment["LD_PRELOAD"] = PIPER_FAULTY_FILES;
  environment["ASAN_OPTIONS"] = "verify_asan_link_order=0";
  environment[PIPER_FAULTS_BELOW] = fs::canonical(run.folder);
  return environment;
}

void prepare(const WritingRun& run) {
  fs::remove_all(run.folder);
  fs::create_directories(run.folder);
  run.prepare();
}

}  // namespace

Ended run_with_fault(const WritingRun& run, const std::string& what, long at, int error) {
  prepare(run);
  std::map<std::string, std::string> environment = environment_of(run);
  environment[PIPER_FAULTS_DO] = what;
  environment[PIPER_FAULTS_AT] = std::to_string(at);
  if (error != 0) {
    environment[PIPER_FAULTS_ERRNO] = std::to_string(error);
  }
  return run_program(run.program, run.arguments, run.folder, environment);
}

Recorded record(const WritingRun& run) {
  prepare(run);
  Recorded recorded;
  recorded.before = look(fs::canonical(run.folder));
  const std::string log = fs::temp_directory_path() / ("piper_calls_" + std::to_string(::getpid()));
  std::map<std::string, std::string> environment = environment_of(run);
  environment[PIPER_FAULTS_LOG] = log;
  recorded.ended = run_program(run.program, run.arguments, run.folder, environment);
  recorded.calls = read_calls(log);
  fs::remove(log);
  return recorded;
}

long count(const std::vector<FileCall>& calls) {
  return calls.empty() ? 0 : calls.back().number;
}

std::string power_loss_fault(const Recorded& recorded, const Allowed& allowed,
                             std::size_t left_out) {
  std::string fault;
  for (std::size_t done = 0; done <= recorded.calls.size() && fault.empty(); ++done) {
    after_power_loss(
        recorded.before, recorded.calls, done,
        [&](const Files& files) {
          if (fault.empty() && !allowed(without_staging(files), done == recorded.calls.size())) {
            fault =
                "after " + (done == 0 ? "nothing" : to_string(recorded.calls[done - 1])) +
                (left_out == kNoSync ? "" : ", without " + to_string(recorded.calls[left_out])) +
                ':' + describe(files);
          }
        },
        left_out);
  }
  return fault;
}

std::string describe(const Files& files) {
  std::string text;
  for (const auto& [path, bytes] : files) {
    text += "\n  " + path + ": " + std::to_string(bytes.size()) + " bytes '" + bytes.substr(0, 40) +
            '\'';
  }
  return text;
}

Files without_staging(Files files) {
  for (auto it = files.begin(); it != files.end();) {
    const std::string name = it->first.substr(it->first.rfind('/') + 1);
    it = name.starts_with('.') && name.find(".piper-") != std::string::npos ? files.erase(it)
                                                                            : std::next(it);
  }
  return files;
}

}  // namespace piper::testing
