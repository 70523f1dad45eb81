// Throws where the wrapper catches.
#include <piper/strategy.hpp>

#include <stdexcept>

namespace {

void plan(piper::sdk::Job& job) {
  job.claim_order();
  throw std::runtime_error("the cat is on the keyboard");
}

}  // namespace

PIPER_STRATEGY(plan)
