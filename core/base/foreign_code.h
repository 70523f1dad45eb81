// Code that is not ours, a plugin's or a model library's, while it runs in our process: where it
// crashes, ends the process or does not come back, the user is told whose code that was.
//
//     error: plugin 'hanayo' crashed in plan (signal 11, SIGSEGV) [plugin.crashed]
//     error: plugin 'hanayo' called exit(3) in plan [plugin.exited]
//     still in plan of plugin 'hanayo' after 5 s
//
// After a crash the process ends by the same signal (with a core file, where those are on), after
// an exit with status 2. Handlers that were there before, those of a sanitizer among them, come
// after ours. `_exit` is not seen.
//
// What the code prints on standard output goes to standard error meanwhile, so that what a command
// prints (JSON, a picture) stays whole.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace piper {

class ForeignCode {
 public:
  struct Names {
    std::string whose;    // "plugin 'hanayo'"
    std::string in;       // "plan", "static constructors"
    std::string crashed;  // codes: "plugin.crashed"
    std::string exited;   // "plugin.exited"
  };
  // Lives on the stack of the thread that runs the code; handlers are on while one lives. `first`:
  // after how long it says that the code still runs, then each time as long again as so far.
  explicit ForeignCode(Names names, std::chrono::milliseconds first = std::chrono::seconds(5));
  ~ForeignCode();
  ForeignCode(const ForeignCode&) = delete;
  ForeignCode& operator=(const ForeignCode&) = delete;

 private:
  void watch(std::chrono::milliseconds gap);

  const std::string still_;
  std::size_t slot_ = 0;
  std::unique_ptr<char[]> stack_;  // of the handlers on this thread, where it had none
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread watcher_;
};

}  // namespace piper
