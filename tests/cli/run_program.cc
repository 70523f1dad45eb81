#include "tests/cli/run_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

namespace piper::testing {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

// Leaves the file's position alone, which the child shares.
std::string content(int file) {
  std::string text;
  std::array<char, 4096> block{};
  for (ssize_t n = 0;
       (n = ::pread(file, block.data(), block.size(), static_cast<off_t>(text.size()))) > 0;) {
    text.append(block.data(), static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace

Ended run_program(const std::string& named, const std::vector<std::string>& arguments,
                  const std::string& folder, const std::map<std::string, std::string>& environment,
                  const std::string& interrupt_at, int signal) {
  const char* const other = std::getenv("PIPER_TEST_PROGRAM");
  const std::string program = other != nullptr && named == PIPER_PROGRAM ? other : named;
  const File out(std::tmpfile());
  const File err(std::tmpfile());
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    for (const auto& [name, value] : environment) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    ::dup2(::fileno(out.get()), STDOUT_FILENO);
    ::dup2(::fileno(err.get()), STDERR_FILENO);
    if (::chdir(folder.c_str()) == 0) {
      ::execv(program.c_str(), argv.data());
    }
    std::perror(program.c_str());
    ::_exit(127);
  }
  int status = 0;
  bool running = true;
  while (running && !interrupt_at.empty()) {
    if (content(::fileno(out.get())).find(interrupt_at) != std::string::npos) {
      ::kill(child, signal);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    running = ::waitpid(child, &status, WNOHANG) == 0;
  }
  if (running) {
    ::waitpid(child, &status, 0);
  }

  Ended ended;
  ended.seconds = std::chrono::steady_clock::now() - begin;
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.out = content(::fileno(out.get()));
  ended.err = content(::fileno(err.get()));
  return ended;
}

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace piper::testing
