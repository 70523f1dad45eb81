#include "runtime/comm/local/collective.h"

#include <algorithm>
#include <array>

namespace piper {
namespace {

constexpr std::size_t kLine = 16;  // slices are whole cache lines of floats
constexpr std::size_t kBlock =
    4096;  // elements that are added up at a time: they stay in the cache

using Posted = LocalGroup::Posted;

// Calls give(sum, at, count) with the sums over the members of their elements at <= i < at + count,
// block by block, for begin <= i < end.
template <typename T, typename Give>
void add_up(const std::vector<Posted>& members, std::size_t begin, std::size_t end, Give give) {
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
    give(sum.data(), at, count);
  }
}

// data[i] of every member becomes the sum over the members, for begin <= i < end.
template <typename T>
void reduce(const std::vector<Posted>& members, std::size_t begin, std::size_t end) {
  add_up<T>(members, begin, end, [&](const T* sum, std::size_t at, std::size_t count) {
    for (const Posted& member : members) {
      std::copy_n(sum, count, static_cast<T*>(member.data) + at);
    }
  });
}

// part[i - begin] grows by the sum over the members of data[i], for begin <= i < end.
template <typename T>
void reduce_into(T* part, const std::vector<Posted>& members, std::size_t begin, std::size_t end) {
  add_up<T>(members, begin, end, [&](const T* sum, std::size_t at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      part[at - begin + i] += sum[i];
    }
  });
}

std::string describe(const Posted& posted, std::uint32_t rank) {
  using Kind = LocalGroup::Kind;
  const char* const verb = posted.kind == Kind::all_reduce       ? " reduces "
                           : posted.kind == Kind::reduce_scatter ? " scatters "
                                                                 : " gathers ";
  const std::string what =
      posted.kind == Kind::all_gather
          ? std::to_string(posted.count * size_of(posted.dtype)) + " bytes"
          : std::to_string(posted.count) + ' ' + std::string(to_string(posted.dtype)) + " elements";
  return "rank " + std::to_string(rank) + verb + what + " of tag " + std::to_string(posted.tag);
}

// Calls add(T()) with the C++ type of what is added up.
template <typename Add>
void with_type(DType dtype, Add add) {
  switch (dtype) {
    case DType::float32:
      return add(float());
    case DType::float64:
      return add(double());
    case DType::int64:
      return add(std::int64_t());
    case DType::bfloat16:
    case DType::boolean:
      throw CommunicationError("expected numbers of a type that sums are made in, got " +
                               std::string(to_string(dtype)));
  }
}

}  // namespace

LocalGroup::LocalGroup(Cancellation& cancellation, std::vector<std::uint32_t> ranks)
    : cancellation_(cancellation), ranks_(std::move(ranks)), posted_(ranks_.size()) {
  cancellation.attach(*this);
}

void LocalGroup::wake() noexcept {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

std::size_t LocalGroup::all_reduce(std::uint32_t member, const Reduction& reduction) {
  if (size() == 1) {
    return 0;
  }
  meet(member, {Kind::all_reduce, reduction.tag, reduction.dtype, reduction.count, reduction.data});
  const std::size_t lines = (reduction.count + kLine - 1) / kLine;
  const std::size_t each = (lines + size() - 1) / size() * kLine;
  const std::size_t begin = std::min(member * each, reduction.count);
  const std::size_t end = std::min(begin + each, reduction.count);
  with_type(reduction.dtype, [&](auto zero) { reduce<decltype(zero)>(posted_, begin, end); });
  part();
  return 2 * (size() - 1) * (end - begin) * size_of(reduction.dtype);  // read, and written back
}

std::size_t LocalGroup::reduce_scatter(std::uint32_t member, const Scatter& scatter) {
  meet(member, {Kind::reduce_scatter, scatter.tag, scatter.dtype, scatter.count,
                const_cast<void*>(scatter.whole)});
  const std::size_t each = scatter.count / size();
  const std::size_t begin = member * each, end = begin + each;
  with_type(scatter.dtype, [&](auto zero) {
    reduce_into(static_cast<decltype(zero)*>(scatter.part), posted_, begin, end);
  });
  part();
  return (size() - 1) * each * size_of(scatter.dtype);
}

std::size_t LocalGroup::all_gather(std::uint32_t member, const Gather& gather) {
  const std::size_t bytes = gather.count * size_of(gather.dtype);
  meet(member,
       {Kind::all_gather, gather.tag, gather.dtype, gather.count, const_cast<void*>(gather.part)});
  for (std::size_t m = 0; m < posted_.size(); ++m) {
    char* const to = static_cast<char*>(gather.whole) + m * bytes;
    if (to != posted_[m].data) {
      std::copy_n(static_cast<const char*>(posted_[m].data), bytes, to);
    }
  }
  part();
  return (size() - 1) * bytes;
}

void LocalGroup::meet(std::uint32_t member, const Posted& posted) {
  posted_[member] = posted;
  assemble();
  if (!difference_.empty()) {
    throw CommunicationError(difference_);
  }
}

void LocalGroup::assemble() {
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

void LocalGroup::part() {
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

std::string LocalGroup::compare() const {
  const Posted& first = posted_.front();
  for (std::size_t m = 1; m < posted_.size(); ++m) {
    const Posted& other = posted_[m];
    if (other.kind != first.kind || other.tag != first.tag || other.dtype != first.dtype ||
        other.count != first.count) {
      return "members of a collective differ: " + describe(first, ranks_.front()) + ", but " +
             describe(other, ranks_[m]);
    }
  }
  return "";
}

}  // namespace piper
