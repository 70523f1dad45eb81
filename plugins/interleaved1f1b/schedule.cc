#include "schedule.h"

#include <piper/filter.h>

#include <algorithm>
#include <utility>

namespace interleaved1f1b {
namespace {

class Chain {
 public:
  explicit Chain(std::uint32_t stage) : stage_(stage) {}

  void forwards(std::uint32_t count) {
    for (; count > 0; --count) {
      actions_.push_back({stage_, forward_++, PIPER_FORWARD, 0});
    }
  }
  void backwards(std::uint32_t count) {
    for (; count > 0; --count) {
      actions_.push_back({stage_, backward_++, PIPER_BACKWARD, 0});
    }
  }
  std::vector<piper_action> take() { return std::move(actions_); }

 private:
  std::uint32_t stage_;
  std::uint32_t forward_ = 0;
  std::uint32_t backward_ = 0;
  std::vector<piper_action> actions_;
};

}  // namespace

std::vector<piper_action> one_forward_one_backward(std::uint32_t stage, std::uint32_t stages,
                                                   std::uint32_t microbatches) {
  const std::uint32_t warm_up = std::min(stages - 1 - stage, microbatches);
  Chain chain(stage);
  chain.forwards(warm_up);
  for (std::uint32_t steady = warm_up; steady < microbatches; ++steady) {
    chain.forwards(1);
    chain.backwards(1);
  }
  chain.backwards(warm_up);
  return chain.take();
}

std::vector<piper_action> gpipe(std::uint32_t stage, std::uint32_t microbatches) {
  Chain chain(stage);
  chain.forwards(microbatches);
  chain.backwards(microbatches);
  return chain.take();
}

}  // namespace interleaved1f1b
