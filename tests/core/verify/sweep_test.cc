// Mutants of every plan of the corpus: refused by the verifier, valid, or missed. Missed is a plan
// that the verifier accepts although an edge of the DAG is no longer implied (the brute-force
// oracle, and the order that directives ask for) or a symbolic run finds a wrong result, a race, a
// deadlock or more memory than the bound.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "core/verify/verify.h"
#include "tests/support/plan_corpus.h"
#include "tests/support/plan_edit.h"
#include "tests/support/plan_mutation.h"
#include "tests/support/plan_oracle.h"
#include "tests/support/symbolic_run.h"

namespace piper {
namespace {

using test::CorpusJob;
using test::plan_corpus;

// PIPER_SWEEP=n: n mutants of each plan and kind instead of one of every third plan.
std::uint32_t mutants() {
  const char* const factor = std::getenv("PIPER_SWEEP");
  return factor == nullptr ? 0 : static_cast<std::uint32_t>(std::atoi(factor));
}

std::string find_fault(const Plan& plan, const ModelGraph& model, std::uint32_t runs) {
  if (std::string fault = test::find_fault(plan); !fault.empty()) {
    return fault;
  }
  for (std::uint32_t seed = 0; seed < runs; ++seed) {
    if (std::string fault = test::run_symbolically(plan, model, seed).fault; !fault.empty()) {
      return fault;
    }
  }
  return "";
}

template <typename Visit>
void for_each_plan(Visit visit) {
  for (const CorpusJob& job : plan_corpus()) {
    visit(job, job.plans.train);
    visit(job, job.plans.evaluate);
  }
}

TEST(Corpus, HasTwoHundredJobsWithNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const CorpusJob& job : plan_corpus()) {
    EXPECT_TRUE(names.insert(job.name).second) << job.name;
  }
  std::printf("  %zu jobs, %zu plans\n", names.size(), 2 * names.size());
  EXPECT_GE(names.size(), 200u);
}

TEST(Corpus, IsAcceptedByTheVerifierAndComputesWhatOneDeviceDoes) {
  for_each_plan([](const CorpusJob& job, const Plan& plan) {
    const Status status = verify(plan, job.job.model);
    ASSERT_TRUE(status) << job.name << ": " << to_string(status.error());
    ASSERT_TRUE(verify_order(plan, job.job.model, job.annotated)) << job.name;
    ASSERT_EQ(find_fault(plan, job.job.model, 2), "") << job.name;
  });
}

// Both start from one layout of parameters: a step of training can be followed by an evaluation.
TEST(Corpus, HasTheSameShardsInTrainingAndEvaluation) {
  const auto groups_of_gathers = [](const Plan& plan) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> groups;
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      for (const Task& task : plan.programs[p].tasks) {
        if (task.op == Op::all_gather && plan.buckets[index(task.bucket)].zero == 3) {
          const Communicator& communicator = plan.communicators[index(task.communicator)];
          std::vector<std::uint32_t> layout = communicator.ranks;
          layout.push_back(communicator.group_size);
          groups[{p, index(task.bucket)}] = std::move(layout);
        }
      }
    }
    return groups;
  };
  for (const CorpusJob& job : plan_corpus()) {
    EXPECT_EQ(job.plans.train.buckets, job.plans.evaluate.buckets) << job.name;
    ASSERT_EQ(job.plans.train.programs.size(), job.plans.evaluate.programs.size()) << job.name;
    for (std::size_t p = 0; p < job.plans.train.programs.size(); ++p) {
      EXPECT_EQ(job.plans.train.programs[p].ranks, job.plans.evaluate.programs[p].ranks);
      EXPECT_EQ(job.plans.train.programs[p].buckets, job.plans.evaluate.programs[p].buckets);
    }
    EXPECT_EQ(groups_of_gathers(job.plans.train), groups_of_gathers(job.plans.evaluate))
        << job.name;
  }
}

struct Count {
  std::uint32_t refused = 0, valid = 0, missed = 0;
};

TEST(Mutation, OfThePlansOfTheCorpusIsNeverMissed) {
  std::map<std::string, Count> table;
  std::uint32_t plan_number = 0;
  std::map<std::string, std::uint32_t> codes;
  for_each_plan([&](const CorpusJob& job, const Plan& original) {
    ++plan_number;
    Plan laid_out = original;  // as edits lay a plan out
    for (std::uint32_t p = 0; p < laid_out.programs.size(); ++p) {
      const test::ProgramEdit edit(laid_out, p);
    }
    std::uint32_t kind_number = 0;
    for (const test::MutationKind& kind : test::mutation_kinds()) {
      const std::uint32_t wanted = mutants() > 0                          ? mutants()
                                   : (plan_number + kind_number) % 3 == 0 ? 1
                                                                          : 0;
      ++kind_number;
      std::uint32_t state = plan_number * 7919 + kind_number * 104729;
      std::uint32_t limit = 0;  // one more than the last change there is, as far as it is known
      for (std::uint32_t n = 0; n < wanted; ++n) {
        state = state * 1664525u + 1013904223u;
        std::uint32_t i = (state >> 8) % (limit == 0 ? 64 : limit);
        Plan mutant = laid_out;
        while (!kind.change(mutant, i) && i > 0) {
          limit = i;
          i = (state >> 8) % limit;
          mutant = laid_out;
        }
        if (mutant == laid_out) {
          continue;
        }
        Count& count = table[kind.name];
        Status status = verify(mutant, job.job.model);
        if (status) {
          status = verify_order(mutant, job.job.model, job.annotated);
        }
        if (!status) {
          ++count.refused;
          ++codes[status.error().front().code];
          continue;
        }
        const std::string fault = find_fault(mutant, job.job.model, 3);
        ++(fault.empty() ? count.valid : count.missed);
        EXPECT_EQ(fault, "") << kind.name << " " << i << " of " << job.name << "\n"
                             << (table[kind.name].missed < 3 ? print(mutant, job.job.model) : "");
      }
    }
  });
  std::printf("  %-34s %8s %8s %8s\n", "kind", "refused", "valid", "missed");
  Count all;
  for (const test::MutationKind& kind : test::mutation_kinds()) {
    const Count& count = table[kind.name];
    std::printf("  %-34s %8u %8u %8u\n", kind.name.c_str(), count.refused, count.valid,
                count.missed);
    EXPECT_GT(count.refused, 0u) << kind.name;
    all.refused += count.refused;
    all.valid += count.valid;
    all.missed += count.missed;
  }
  std::printf("  %-34s %8u %8u %8u\n", "all", all.refused, all.valid, all.missed);
  for (const auto& [code, times] : codes) {
    std::printf("    %-24s %8u\n", code.c_str(), times);
  }
  EXPECT_EQ(all.missed, 0u);
}

}  // namespace
}  // namespace piper
