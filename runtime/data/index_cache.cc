#include "runtime/data/index_cache.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "core/base/cache_folder.h"
#include "core/base/output_file.h"
#include "runtime/data/held_out.h"

namespace piper {
namespace {

constexpr std::string_view kMagic = "piper-rows 1 ";
constexpr std::uint64_t kLeastBytes = 4 << 20;    // of a file: it is read in 20 ms
constexpr std::int64_t kSettled = 2'000'000'000;  // nanoseconds: FAT counts in 2 seconds

// What follows the key; then the arrays, and a checksum of all of it.
struct Sizes {
  std::uint64_t rows = 0, gaps = 0, ranges = 0, bytes = 0, unshifted = 0, first_unshifted = 0;
};

template <typename T>
std::string_view bytes_of(const T* values, std::size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

// Calls visit(pointer, count) for each array.
template <typename Index, typename Visit>
void each_array(Index& index, Visit visit) {
  visit(index.offsets.data(), index.offsets.size());
  visit(index.hashes.data(), index.hashes.size());
  visit(index.counted.data(), index.counted.size());
  visit(index.gaps.data(), index.gaps.size());
  visit(index.ranges.data(), index.ranges.size());
}

std::uint64_t checksum(const Sizes& sizes, const RowIndex& index) {
  std::uint64_t sums[6] = {mixed_hash(bytes_of(&sizes, 1))};
  std::size_t i = 1;
  each_array(index, [&](const auto* values, std::size_t count) {
    sums[i++] = mixed_hash(bytes_of(values, count));
  });
  return mixed_hash(bytes_of(sums, 6));
}

bool read(std::ifstream& stream, void* to, std::size_t bytes) {
  return bytes == 0 || stream.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
}

}  // namespace

IndexCache::IndexCache(const SourceFile& file, const std::vector<RowColumn>& columns)
    : file_(file), columns_(columns.size()) {
  std::string fields;
  for (const RowColumn& column : columns) {
    fields += column.describe() + '\n';
  }
  key_ = file.path + '\n' + std::to_string(file.bytes) + ' ' + std::to_string(file.time) + ' ' +
         std::to_string(file.device) + ' ' + std::to_string(file.inode) + '\n' + fields;
  if (const std::filesystem::path folder = cache_folder(); !folder.empty()) {
    char name[32];
    std::snprintf(name, sizeof name, "%016llx.rows",
                  static_cast<unsigned long long>(mixed_hash(file.path + '\n' + fields)));
    path_ = folder / "rows" / name;
  }
}

std::optional<RowIndex> IndexCache::load() const {
  if (path_.empty() || file_.bytes < kLeastBytes) {
    return std::nullopt;
  }
  const std::string head = std::string(kMagic) + std::to_string(key_.size()) + '\n' + key_;
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path_, failed);
  std::ifstream stream(path_, std::ios::binary);
  std::string found(head.size(), '\0');
  Sizes sizes;
  if (failed || !read(stream, found.data(), found.size()) || found != head ||
      !read(stream, &sizes, sizeof sizes)) {
    return std::nullopt;
  }
  // Whatever the sizes say: no more is allocated than there is to read.
  std::uint64_t sum = 0;
  constexpr std::size_t kRow = 2 * sizeof(std::uint64_t) + sizeof(std::uint32_t);
  const std::uint64_t left = size - head.size() - sizeof sizes;
  if (sizes.rows > left / kRow || sizes.gaps > left / sizeof(RowIndex::Gap) ||
      sizes.ranges != columns_ || sizes.bytes != file_.bytes ||
      left != sizes.rows * kRow + sizes.gaps * sizeof(RowIndex::Gap) +
                  sizes.ranges * sizeof(RowIndex::Range) + sizeof sum) {
    return std::nullopt;
  }
  RowIndex index;
  index.bytes = sizes.bytes;
  index.unshifted = sizes.unshifted;
  index.first_unshifted = sizes.first_unshifted;
  index.offsets.resize(sizes.rows);
  index.hashes.resize(sizes.rows);
  index.counted.resize(sizes.rows);
  index.gaps.resize(sizes.gaps);
  index.ranges.resize(sizes.ranges);
  bool complete = true;
  each_array(index, [&](auto* values, std::size_t count) {
    complete = complete && read(stream, values, count * sizeof *values);
  });
  if (!complete || !read(stream, &sum, sizeof sum) || sum != checksum(sizes, index)) {
    return std::nullopt;
  }
  return index;
}

void IndexCache::store(const RowIndex& index) const {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  if (path_.empty() || file_.bytes < kLeastBytes || now - file_.time < kSettled) {
    return;
  }
  auto file = OutputFile::create(path_.string());
  if (!file) {
    return;
  }
  const Sizes sizes = {index.rows(), index.gaps.size(), index.ranges.size(),
                       index.bytes,  index.unshifted,   index.first_unshifted};
  const std::uint64_t sum = checksum(sizes, index);
  bool written =
      file->write(std::string(kMagic) + std::to_string(key_.size()) + '\n' + key_).has_value() &&
      file->write(&sizes, sizeof sizes).has_value();
  each_array(index, [&](const auto* values, std::size_t count) {
    written = written && file->write(values, count * sizeof *values).has_value();
  });
  if (written && file->write(&sum, sizeof sum)) {
    static_cast<void>(file->commit());
  }
}

}  // namespace piper
