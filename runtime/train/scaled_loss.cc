#include "runtime/train/scaled_loss.h"

#include <algorithm>
#include <utility>

namespace piper {

void scale_gradients(LiveModel& model, std::shared_ptr<const double> factor) {
  const ValueId loss = model.graph.loss;
  const RegionId producer = model.graph.value(loss).producer;
  const auto& outputs = model.graph.region(producer).outputs;
  const auto position =
      static_cast<std::size_t>(std::find(outputs.begin(), outputs.end(), loss) - outputs.begin());
  RegionFunction& region = model.regions[index(producer)];
  region = [real = std::move(region), position, factor](const Tensors& inputs) {
    Tensors results = real(inputs);
    if (results[position].requires_grad()) {
      results[position].register_hook(
          [factor](const at::Tensor& gradient) { return gradient.mul(*factor); });
    }
    return results;
  };
}

}  // namespace piper
