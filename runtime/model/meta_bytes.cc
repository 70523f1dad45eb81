#include "runtime/model/meta_bytes.h"

#include <c10/core/Allocator.h>

#include <utility>

#include "core/base/diagnostic.h"

namespace piper {

struct MetaBytes::Count {
  std::int64_t live = 0;
  std::vector<std::int64_t> history{0};
};

namespace {

thread_local std::shared_ptr<MetaBytes::Count> current;

struct Block {
  std::shared_ptr<MetaBytes::Count> count;  // a tensor may outlive its MetaBytes
  std::int64_t bytes;
};

void release(void* context) {
  auto* const block = static_cast<Block*>(context);
  block->count->live -= block->bytes;
  delete block;
}

class MetaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    const auto bytes = static_cast<std::int64_t>(size);
    if (!current || bytes == 0) {
      return {nullptr, nullptr, nullptr, c10::kMeta};
    }
    current->live += bytes;
    current->history.push_back(current->live);
    return {nullptr, new Block{current, bytes}, &release, c10::kMeta};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {}
};

void install() {
  static const bool installed = [] {
    c10::SetAllocator(c10::kMeta, new MetaAllocator, /*priority=*/255);
    return true;
  }();
  (void)installed;
}

}  // namespace

MetaBytes::MetaBytes() : count_(std::make_shared<Count>()) {
  install();
  PIPER_CHECK(!current, "bytes of meta tensors are counted twice");
  current = count_;
}
MetaBytes::~MetaBytes() {
  current.reset();
}

std::int64_t MetaBytes::live() const {
  return count_->live;
}
std::vector<std::int64_t> MetaBytes::take_history() {
  return std::exchange(count_->history, {count_->live});
}

}  // namespace piper
