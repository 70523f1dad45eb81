// Calls the host from a thread of its own.
#include <piper/strategy.hpp>

#include <thread>

namespace {

void plan(piper::sdk::Job& job) {
  piper_code code = PIPER_OK;
  std::thread([&] {
    piper_job other{};
    other.struct_size = sizeof(other);
    code = job.host()->graph->job(job.ctx(), &other);
  }).join();
  if (code == PIPER_OK) {
    job.fail("served", "the host served another thread");
  }
}

}  // namespace

PIPER_STRATEGY(plan)
