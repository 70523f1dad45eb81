#include "core/base/dtype.h"

#include <string>

#include "core/base/diagnostic.h"
#include "runtime/model/build.h"

namespace piper {

at::ScalarType to_torch(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return at::kFloat;
    case DType::float64:
      return at::kDouble;
    case DType::bfloat16:
      return at::kBFloat16;
    case DType::int64:
      return at::kLong;
    case DType::boolean:
      return at::kBool;
  }
  PIPER_CHECK(false, "unknown element type");
}

DType from_torch(at::ScalarType dtype) {
  for (const DType known :
       {DType::float32, DType::float64, DType::bfloat16, DType::int64, DType::boolean}) {
    if (to_torch(known) == dtype) {
      return known;
    }
  }
  PIPER_CHECK(false, std::string("no element type for ") + c10::toString(dtype));
}

}  // namespace piper
