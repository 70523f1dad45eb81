// What a person sees of a run: a line for each reported step, and on a terminal one line below it
// that is rewritten.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "core/base/diagnostic.h"
#include "core/base/log.h"
#include "runtime/metrics/step_record.h"

namespace piper {

// `step 10  loss 3.2208  norm 1.23  lr 1.0e-03  11.9 ms  3,378 tok/s  bubble 17%  peak 12.3 MiB
// (planned 13.0)`. Where no label counts there is no loss: `loss -`. The peak is that of the rank
// with the most; where a rank held more than was planned for it, `rank 1 held 4.1% more than
// planned` follows.
std::string step_line(const StepRecord& record);

// `12/200  loss 3.2208  3,378 tok/s  1:23 left`; the rest is estimated from the steps after the
// first.
std::string progress_line(const StepRecord& record, std::int64_t steps, double seconds_a_step);

// `step 4: held out 3/20  loss 3.2208`: `batch` of them are done.
std::string evaluation_line(std::int64_t step, std::int64_t batch, std::int64_t batches,
                            double loss);

// Whether a line can be rewritten there: a terminal that is not "dumb".
bool is_terminal(std::FILE* file);

// Digits in groups of three.
std::string grouped(std::int64_t number);

class Display {
 public:
  // Lines go to `lines`; the rewritten one to `progress`, or nowhere where that is null.
  Display(std::FILE* lines, std::FILE* progress)
      : lines_(lines), remarks_(stderr), progress_(progress) {}
  ~Display() { clear(); }
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  void line(const std::string& text);
  // On standard error.
  void remark(const Diagnostic& diagnostic);
  // At most ten times a second; `now`: in any case.
  void progress(const std::string& text, bool now = false);

 private:
  void clear();

  LineLog lines_, remarks_;
  std::FILE* progress_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace piper
