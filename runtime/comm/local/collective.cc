#include "runtime/comm/local/collective.h"

#include <algorithm>
#include <array>

namespace piper {
namespace {

constexpr std::size_t kLine = 16;  // slices are whole cache lines of floats
constexpr std::size_t kBlock =
    4096;  // elements that are added up at a time: they stay in the cache

// data[i] of every member becomes the sum over the members, for begin <= i < end.
template <typename T>
void reduce(const std::vector<Reduction>& members, std::size_t begin, std::size_t end) {
  std::array<T, kBlock> sum;
  for (std::size_t at = begin; at < end; at += kBlock) {
    const std::size_t count = std::min(kBlock, end - at);
    std::copy_n(static_cast<const T*>(members[0].data) + at, count, sum.begin());
    for (std::size_t m = 1; m < members.size(); ++m) {
      const T* const other = static_cast<const T*>(members[m].data) + at;
      for (std::size_t i = 0; i < count; ++i) {
        sum[i] += other[i];
      }
    }
    for (const Reduction& member : members) {
      std::copy_n(sum.begin(), count, static_cast<T*>(member.data) + at);
    }
  }
}

std::string describe(const Reduction& reduction, std::uint32_t rank) {
  return "rank " + std::to_string(rank) + " reduces " + std::to_string(reduction.count) +
         (reduction.element == Element::float32 ? " float32" : " float64") + " elements of tag " +
         std::to_string(reduction.tag);
}

}  // namespace

LocalCollective::LocalCollective(Cancellation& cancellation, std::vector<std::uint32_t> ranks)
    : cancellation_(cancellation), ranks_(std::move(ranks)), posted_(ranks_.size()) {
  cancellation.attach(*this);
}

void LocalCollective::wake() noexcept {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void LocalCollective::all_reduce(std::uint32_t member, const Reduction& reduction) {
  if (size() == 1) {
    return;
  }
  posted_[member] = reduction;
  gather();
  if (!difference_.empty()) {
    throw CommunicationError(difference_);
  }
  const std::size_t lines = (reduction.count + kLine - 1) / kLine;
  const std::size_t each = (lines + size() - 1) / size() * kLine;
  const std::size_t begin = std::min(member * each, reduction.count);
  const std::size_t end = std::min(begin + each, reduction.count);
  if (reduction.element == Element::float32) {
    reduce<float>(posted_, begin, end);
  } else {
    reduce<double>(posted_, begin, end);
  }
  part();
}

void LocalCollective::gather() {
  std::unique_lock lock(mutex_);
  cancellation_.throw_if_requested();
  const std::uint64_t round = round_;
  if (++arrived_ == size()) {
    difference_ = compare();
    arrived_ = 0;
    ++round_;
    lock.unlock();
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return round_ != round || cancellation_.requested(); });
  if (round_ == round) {
    --arrived_;
    throw Cancelled();
  }
}

void LocalCollective::part() {
  std::unique_lock lock(mutex_);
  const std::uint64_t round = round_;
  if (++arrived_ == size()) {
    arrived_ = 0;
    ++round_;
    lock.unlock();
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return round_ != round; });
}

std::string LocalCollective::compare() const {
  const Reduction& first = posted_.front();
  for (std::size_t m = 1; m < posted_.size(); ++m) {
    const Reduction& other = posted_[m];
    if (other.tag != first.tag || other.element != first.element || other.count != first.count) {
      return "members of a collective differ: " + describe(first, ranks_.front()) + ", but " +
             describe(other, ranks_[m]);
    }
  }
  return "";
}

}  // namespace piper
