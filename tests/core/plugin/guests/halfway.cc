// Fails, or throws, after half of what it has to say.
#include <piper/strategy.hpp>

#include <stdexcept>

static void plan(piper::sdk::Job& job) {
  using piper::sdk::Filter;
  job.claim_split();
  job.tag(Filter(), "FIRST", 0);
  if (job.get_bool("fails").value) {
    job.fail("half", "no more of this");
  }
  if (job.get_bool("throws").value) {
    throw std::runtime_error("no more of this");
  }
  job.tag(Filter(), "SECOND", 0);
}

PIPER_STRATEGY(plan)
