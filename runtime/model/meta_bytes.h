// Counts the bytes of meta tensors, which take no memory: what the same run would take on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace piper {

// Counts what this thread allocates on the meta device while it lives, until it is freed. Does not
// nest. What an operation that has no kernel for the meta device needs inside is not seen.
class MetaBytes {
 public:
  MetaBytes();
  ~MetaBytes();
  MetaBytes(const MetaBytes&) = delete;
  MetaBytes& operator=(const MetaBytes&) = delete;

  std::int64_t live() const;
  // What was live after each allocation since the last call, and at the start.
  std::vector<std::int64_t> take_history();

  struct Count;

 private:
  std::shared_ptr<Count> count_;
};

}  // namespace piper
