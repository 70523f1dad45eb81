// What a task must read and write, in order, as buffers of its program: plan/accesses.h, found from
// the model and the plan's tables alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/accesses.h"
#include "core/verify/buffer_map.h"

namespace piper {

class ExpectedAccesses {
 public:
  ExpectedAccesses(const Plan& plan, const ModelGraph& model);

  // Goes on to another program; errors as BufferMap::build.
  void build(Report& report, std::uint32_t program);

  // Of a task of the program that names what its op needs. Buffers that the program does not have
  // are none. An all-to-all is known by the kind of what it reads first.
  void find(std::uint32_t task);
  const Chains& chains() const { return chains_; }
  const std::vector<BufferId>& reads() const { return reads_; }
  const std::vector<BufferId>& writes() const { return writes_; }

 private:
  Accessor accessor(std::uint32_t task) const;

  const Plan& plan_;
  Accesses accesses_;
  BufferMap map_;
  Chains chains_;
  std::uint32_t id_ = 0;
  const Program* program_ = nullptr;
  std::vector<Accesses::Entry> entries_;
  std::vector<BufferId> reads_, writes_;
};

}  // namespace piper
