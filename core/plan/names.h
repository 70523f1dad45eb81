// The names of operations, buffers and streams, in the order of their enumerations: as they are
// printed and read back.
#pragma once

#include <array>
#include <string_view>

#include "core/plan/plan.h"

namespace piper {

inline constexpr std::array<std::string_view, kOps> kOpNames = [] {
  std::array<std::string_view, kOps> names;
  for (const OpTraits& op : kOpTraits) {
    names[static_cast<std::size_t>(op.op)] = op.name;
  }
  return names;
}();

inline constexpr std::array<std::string_view, kBufferKinds> kBufferNames = [] {
  std::array<std::string_view, kBufferKinds> names;
  for (const BufferTraits& buffer : kBufferTraits) {
    names[static_cast<std::size_t>(buffer.kind)] = buffer.name;
  }
  return names;
}();

inline constexpr std::array<std::string_view, 3> kStreamKinds{"compute", "communication", "host"};
static_assert(static_cast<std::size_t>(Stream::Kind::host) + 1 == kStreamKinds.size());

}  // namespace piper
