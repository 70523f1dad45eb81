// Keeps exceptions of LibTorch and the standard library in.
#pragma once

#include <exception>
#include <string>

#include "core/base/diagnostic.h"

namespace piper {

// Runs `body`, which returns an Expected or a Status; what it throws is an error, run.exception,
// with the first line of its text.
template <typename Body>
auto guarded(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& exception) {
    const std::string what = exception.what();
    return fail(error("run.exception", what.substr(0, what.find('\n'))));
  }
}

}  // namespace piper
