// Random jobs: what the planner plans, the verifier proves and the symbolic run confirms. A refusal
// with a diagnostic of the planner is fine; a plan that the verifier refuses is not.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "tests/support/job_spec.h"
#include "tests/support/plan_oracle.h"
#include "tests/support/symbolic_run.h"

namespace piper {
namespace {

using test::JobSpec;

struct Verdict {
  bool is_refused = false;  // by the planner, with a diagnostic about the job
  std::string code;         // its
  std::string fault;        // "" if all is well
};

std::string check(const Plan& plan, const ModelGraph& model) {
  if (std::string fault = test::find_fault(plan); !fault.empty()) {
    return fault;
  }
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    if (std::string fault = test::run_symbolically(plan, model, seed).fault; !fault.empty()) {
      return fault;
    }
  }
  return "";
}

Verdict judge(const JobSpec& spec) {
  const test::SpecJob job = test::make_job(spec);
  const Expected<Plans> plans = test::plan(job);
  if (!plans) {
    const std::string code = plans.error().front().code;
    const bool is_plan = code.rfind("plan.", 0) == 0 || code.rfind("ir.", 0) == 0;
    return {!is_plan, code, is_plan ? to_string(plans.error()) : ""};
  }
  for (const Plan* const plan : {&plans->train, &plans->evaluate}) {
    if (std::string fault = check(*plan, job.model); !fault.empty()) {
      return {false, "", (plan == &plans->train ? "train: " : "evaluate: ") + fault};
    }
  }
  return {};
}

// The same in a process of its own, so that a crash is a fault as any other.
Verdict judge_apart(const JobSpec& spec) {
  int ends[2];
  PIPER_CHECK(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  PIPER_CHECK(child >= 0, "no process");
  if (child == 0) {
    close(ends[0]);
    // What takes far too long or too much memory is a fault, too. The address sanitizer reserves
    // terabytes of addresses, so there the limit is left to it.
#ifdef __SANITIZE_ADDRESS__
    alarm(600);
#else
    alarm(60);
    const rlimit most{std::uint64_t{4} << 30, std::uint64_t{4} << 30};
    setrlimit(RLIMIT_AS, &most);
#endif
    Verdict verdict;
    try {
      verdict = judge(spec);
    } catch (const std::exception& error) {
      verdict.fault = error.what();
    }
    const std::string text = (verdict.is_refused ? "r" : "-") + verdict.code + '\n' + verdict.fault;
    const bool is_written =
        write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(is_written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t count; (count = read(ends[0], piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) {
    return {false, "", "crashed with status " + std::to_string(status)};
  }
  const std::size_t line = text.find('\n');
  return {text[0] == 'r', text.substr(1, line - 1), text.substr(line + 1)};
}

// PIPER_SWEEP=n: n times as many cases.
std::uint32_t cases(std::uint32_t usual) {
  const char* const factor = std::getenv("PIPER_SWEEP");
  return factor == nullptr ? usual : usual * static_cast<std::uint32_t>(std::atoi(factor));
}

TEST(Property, OfRandomJobsIsThatTheirPlansComputeWhatOneDeviceDoes) {
  const std::uint32_t count = cases(150);
  std::map<std::string, std::uint32_t> refusals;
  std::uint32_t refused = 0, failures = 0;
  for (std::uint32_t seed = 0; seed < count && failures < 5; ++seed) {
    const JobSpec spec = test::sample_job(seed);
    const Verdict verdict = judge_apart(spec);
    if (verdict.is_refused) {
      ++refused;
      ++refusals[verdict.code];
    }
    if (!verdict.fault.empty()) {
      ++failures;
      const JobSpec small =
          test::shrink(spec, [](const JobSpec& s) { return !judge_apart(s).fault.empty(); });
      ADD_FAILURE() << "seed " << seed << ": " << to_string(spec) << "\n  " << verdict.fault
                    << "\nshrunk: " << to_string(small) << "\n  " << judge_apart(small).fault;
    }
  }
  std::printf("  %u jobs, %u refused by the planner (%.0f %%)\n", count, refused,
              100.0 * refused / count);
  for (const auto& [code, times] : refusals) {
    std::printf("    %-24s %u\n", code.c_str(), times);
  }
  EXPECT_LT(2 * refused, count);
}

}  // namespace
}  // namespace piper
