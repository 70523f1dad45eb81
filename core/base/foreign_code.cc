#include "core/base/foreign_code.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <system_error>

namespace piper {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10U;
constexpr int kRefused = 2;  // exit status

struct Crash {
  int signal;
  const char* name;
};
constexpr std::array<Crash, 5> kCrashes{{{SIGSEGV, "SIGSEGV"},
                                         {SIGBUS, "SIGBUS"},
                                         {SIGFPE, "SIGFPE"},
                                         {SIGILL, "SIGILL"},
                                         {SIGABRT, "SIGABRT"}}};

// What a handler says, ready to be written: it may call next to nothing.
struct Running {
  std::atomic<pid_t> thread{0};     // 0: nobody
  std::array<char, 512> crashed{};  // "error: plugin 'hanayo' crashed in plan (signal "
  std::array<char, 128> crashed_code{};
  std::array<char, 256> exited{};       // "error: plugin 'hanayo' called "
  std::array<char, 256> exited_code{};  // " in plan [plugin.exited]"
};

// All threads' together. Never destroyed: an exit may come at any time.
struct State {
  std::mutex mutex;
  std::size_t living = 0;
  std::array<Running, 32> running;
  std::array<struct sigaction, kCrashes.size()> before{};
  int standard_output = -1;  // where it went before
};
State& state() {
  static auto* const the_state = new State;
  return *the_state;
}
State* handled = nullptr;  // the same, for handlers

pid_t this_thread() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

// The thread's own, the latest first; else anybody's: the code may have threads.
const Running* find_running(pid_t thread) {
  const Running* found = nullptr;
  for (const Running& running : handled->running) {
    const pid_t its = running.thread.load(std::memory_order_acquire);
    if (its == thread || (its != 0 && found == nullptr)) {
      found = &running;
    }
  }
  return found;
}

void say(const char* text) {
  std::size_t left = std::strlen(text);
  while (left > 0) {
    const ssize_t written = ::write(STDERR_FILENO, text, left);
    if (written <= 0) {
      return;
    }
    text += written;
    left -= static_cast<std::size_t>(written);
  }
}

void say_number(int number) {
  std::array<char, 12> digits{};
  char* at = digits.data() + digits.size() - 1;
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  say(at);
}

void on_crash(int signal, siginfo_t* info, void* /*context*/) {
  const int saved = errno;
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i].signal != signal) {
      continue;
    }
    if (const Running* running = find_running(this_thread()); running != nullptr) {
      say(running->crashed.data());
      say_number(signal);
      say(", ");
      say(kCrashes[i].name);
      say(running->crashed_code.data());
    }
    ::sigaction(signal, &handled->before[i], nullptr);
  }
  // What the processor refused happens again when the handler returns, with the cause for whoever
  // comes next; what was sent has to be sent again.
  if (info->si_code <= 0) {
    ::raise(signal);
  }
  errno = saved;
}

void say_exited(const char* call) {
  if (const Running* running = find_running(this_thread()); running != nullptr) {
    std::fflush(stdout);
    say(running->exited.data());
    say(call);
    say(running->exited_code.data());
    ::_exit(kRefused);
  }
}

void on_usual_exit(int status, void* /*unused*/) {
  char call[32];
  std::snprintf(call, sizeof call, "exit(%d)", status);
  say_exited(call);
}

void on_quick_exit() {
  say_exited("quick_exit");
}

template <std::size_t N>
void copy(std::array<char, N>& out, const std::string& text) {
  std::snprintf(out.data(), N, "%s", text.c_str());
}

void flush_output() {
  std::cout.flush();
  std::fflush(stdout);
}

void switch_on(State& all) {
  static const bool once = [] {
    ::on_exit(on_usual_exit, nullptr);
    std::at_quick_exit(on_quick_exit);
    return true;
  }();
  static_cast<void>(once);
  handled = &all;
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    struct sigaction ours {};
    ours.sa_sigaction = on_crash;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(kCrashes[i].signal, &ours, &all.before[i]);
  }
  flush_output();
  constexpr int kFirstFree = 3;
  all.standard_output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, kFirstFree);
  if (all.standard_output >= 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
}

void switch_off(State& all) {
  flush_output();
  if (all.standard_output >= 0) {
    ::dup2(all.standard_output, STDOUT_FILENO);
    ::close(all.standard_output);
  }
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    ::sigaction(kCrashes[i].signal, &all.before[i], nullptr);
  }
}

// The stack of a thread may be what the code has used up.
std::unique_ptr<char[]> give_stack() {
  stack_t known{};
  if (::sigaltstack(nullptr, &known) != 0 || (known.ss_flags & SS_DISABLE) == 0) {
    return nullptr;
  }
  auto memory = std::make_unique<char[]>(kStackBytes);
  stack_t stack{};
  stack.ss_sp = memory.get();
  stack.ss_size = kStackBytes;
  return ::sigaltstack(&stack, nullptr) == 0 ? std::move(memory) : nullptr;
}

}  // namespace

ForeignCode::ForeignCode(Names names, std::chrono::milliseconds first)
    : still_("still in " + names.in + " of " + names.whose + " after "), stack_(give_stack()) {
  State& all = state();
  {
    const std::lock_guard lock(all.mutex);
    if (all.living++ == 0) {
      switch_on(all);
    }
    while (slot_ + 1 < all.running.size() && all.running[slot_].thread != 0) {
      ++slot_;
    }
    Running& own = all.running[slot_];
    copy(own.crashed, "error: " + names.whose + " crashed in " + names.in + " (signal ");
    copy(own.crashed_code, ") [" + names.crashed + "]\n");
    copy(own.exited, "error: " + names.whose + " called ");
    copy(own.exited_code, " in " + names.in + " [" + names.exited + "]\n");
    own.thread.store(this_thread(), std::memory_order_release);
  }
  try {
    watcher_ = std::thread([this, first] { watch(first); });
  } catch (const std::system_error&) {  // then nobody watches
  }
}

ForeignCode::~ForeignCode() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  if (watcher_.joinable()) {
    watcher_.join();
  }
  State& all = state();
  {
    const std::lock_guard lock(all.mutex);
    all.running[slot_].thread.store(0, std::memory_order_release);
    if (--all.living == 0) {
      switch_off(all);
    }
  }
  if (stack_ != nullptr) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
}

// Signals are for the others.
void ForeignCode::watch(std::chrono::milliseconds gap) {
  sigset_t every;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_BLOCK, &every, nullptr);
  std::chrono::milliseconds passed{0};
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, gap, [this] { return has_ended_; })) {
    passed += gap;
    gap = passed;
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g s\n", static_cast<double>(passed.count()) * 1e-3);
    say((still_ + seconds).c_str());
  }
}

}  // namespace piper
