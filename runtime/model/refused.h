// How a mistake of the job or of the model leaves a model function, which has no result to put it
// in.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/diagnostic.h"

namespace piper {

// Thrown below build_model, which catches it; never seen outside.
class Refused : public std::exception {
 public:
  explicit Refused(Diagnostics diagnostics) : diagnostics_(std::move(diagnostics)) {}
  explicit Refused(Diagnostic diagnostic) : diagnostics_{std::move(diagnostic)} {}

  const Diagnostics& diagnostics() const { return diagnostics_; }
  const char* what() const noexcept override { return diagnostics_.front().message.c_str(); }

 private:
  Diagnostics diagnostics_;
};

// Of an exception's text; what LibTorch adds below it is about its own sources.
inline std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

template <typename T>
T value_or_refuse(Expected<T> expected) {
  if (!expected) {
    throw Refused(std::move(expected).error());
  }
  return std::move(*expected);
}

}  // namespace piper
