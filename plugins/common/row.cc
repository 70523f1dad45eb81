#include "row.h"

namespace pipeline {

void Row::forward(Lane& lane) {
  add(lane.stage, lane.next_forward++, PIPER_FORWARD);
}

void Row::backward(Lane& lane) {
  add(lane.stage, lane.next_backward++, PIPER_BACKWARD);
}

void Row::backward_input(Lane& lane) {
  owed_.push_back({lane.stage, lane.next_backward, PIPER_BACKWARD_WEIGHT, 0});
  add(lane.stage, lane.next_backward++, PIPER_BACKWARD_INPUT);
}

void Row::backward_weight() {
  actions_.push_back(owed_.front());
  owed_.pop_front();
}

bool Row::owes(const Lane& lane) const {
  return std::any_of(owed_.begin(), owed_.end(),
                     [&](const piper_action& weight) { return weight.stage == lane.stage; });
}

void Row::backward_weight(const Lane& lane) {
  const auto oldest = std::find_if(owed_.begin(), owed_.end(), [&](const piper_action& weight) {
    return weight.stage == lane.stage;
  });
  actions_.push_back(*oldest);
  owed_.erase(oldest);
}

void Row::forward_beside_backward(Lane& forward, Lane& backward) {
  ++overlaps_;
  add(forward.stage, forward.next_forward++, PIPER_FORWARD, overlaps_);
  add(backward.stage, backward.next_backward++, PIPER_BACKWARD, overlaps_);
}

void Row::keep_microbatches(std::uint32_t count) {
  actions_.erase(
      std::remove_if(actions_.begin(), actions_.end(),
                     [&](const piper_action& action) { return action.microbatch >= count; }),
      actions_.end());
}

}  // namespace pipeline
