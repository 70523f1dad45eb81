#include "runtime/data/row_index.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "runtime/data/held_out.h"

namespace piper {
namespace {

constexpr std::size_t kChunk = 4 << 20;        // bytes read at a time
constexpr std::size_t kLongestLine = 1 << 30;  // a file without ends of lines is no JSON lines

// The lines of a file, one after the other, of which a few megabytes are in memory.
class Lines {
 public:
  explicit Lines(const DataFile& file) : file_(file) {}

  std::uint64_t offset() const { return base_ + at_; }  // of the next line

  // The next line, without its end; false at the end of the file. It stays until the next call.
  Expected<bool> next(std::string_view& line) {
    std::size_t searched = at_;
    while (true) {
      const void* end = std::memchr(buffer_.data() + searched, '\n', buffer_.size() - searched);
      if (end != nullptr) {
        const auto stop = static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data());
        line = std::string_view(buffer_).substr(at_, stop - at_);
        at_ = stop + 1;
        return true;
      }
      if (base_ + buffer_.size() == file_.source().bytes) {
        line = std::string_view(buffer_).substr(at_);
        at_ = buffer_.size();
        return !line.empty();
      }
      searched = buffer_.size() - at_;
      if (searched > kLongestLine) {
        return fail(error("data.json", "expected a line of at most 1 GiB", {file_.source().path}));
      }
      PIPER_TRY(more());
    }
  }

 private:
  Status more() {
    buffer_.erase(0, at_);
    base_ += at_;
    at_ = 0;
    const std::size_t kept = buffer_.size();
    const std::uint64_t left = file_.source().bytes - base_ - kept;
    buffer_.resize(kept + static_cast<std::size_t>(std::min<std::uint64_t>(left, kChunk)));
    return file_.read(base_ + kept, buffer_.size() - kept, buffer_.data() + kept);
  }

  const DataFile& file_;
  std::string buffer_;
  std::uint64_t base_ = 0;  // where the buffer begins in the file
  std::size_t at_ = 0;
};

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  return begin == std::string_view::npos
             ? std::string_view()
             : line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

// Adds what the reader's last row says.
class Statistics {
 public:
  Statistics(const std::vector<RowColumn>& columns, RowIndex& index)
      : columns_(columns), index_(index) {
    index_.ranges.assign(columns.size(), {std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min()});
    for (std::size_t i = 0; i < columns.size(); ++i) {
      labels_ = columns[i].field.labels ? i : labels_;
      tokens_ = columns[i].field.name == "tokens" ? i : tokens_;
    }
  }

  void add(const RowReader& row) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool labels = columns_[i].field.labels;
      RowIndex::Range range = index_.ranges[i];
      for (const std::int64_t value : row.integers(i)) {
        const bool counted = !labels || value != kIgnoredLabel;
        range.least = counted && value < range.least ? value : range.least;
        range.most = counted && value > range.most ? value : range.most;
      }
      index_.ranges[i] = range;
    }
    std::uint32_t counted = 0;
    if (labels_ != kNone) {
      const std::vector<std::int64_t>& labels = row.integers(labels_);
      counted = static_cast<std::uint32_t>(labels.size()) -
                static_cast<std::uint32_t>(std::count(labels.begin(), labels.end(), kIgnoredLabel));
      if (counted >= 2 && tokens_ != kNone && unshifted(row.integers(tokens_), labels)) {
        index_.first_unshifted = index_.unshifted++ == 0 ? index_.rows() : index_.first_unshifted;
      }
    }
    index_.counted.push_back(counted);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  static bool unshifted(const std::vector<std::int64_t>& tokens,
                        const std::vector<std::int64_t>& labels) {
    return std::equal(tokens.begin(), tokens.end(), labels.begin(), labels.end(),
                      [](std::int64_t token, std::int64_t label) {
                        return label == token || label == kIgnoredLabel;
                      });
  }

  const std::vector<RowColumn>& columns_;
  RowIndex& index_;
  std::size_t tokens_ = kNone, labels_ = kNone;
};

}  // namespace

std::uint32_t RowIndex::line(std::size_t row) const {
  const auto after =
      std::upper_bound(gaps.begin(), gaps.end(), row,
                       [](std::uint64_t wanted, const Gap& gap) { return wanted < gap.row; });
  const std::uint64_t empty = after == gaps.begin() ? 0 : std::prev(after)->lines;
  return static_cast<std::uint32_t>(row + empty + 1);
}

Expected<RowIndex> index_rows(const DataFile& file, const std::vector<RowColumn>& columns,
                              Clock::time_point deadline,
                              const std::function<void(std::uint64_t bytes)>& looked) {
  RowIndex index;
  Statistics statistics(columns, index);
  RowReader reader(columns);
  Lines lines(file);
  std::uint64_t told = 0;
  std::string_view line;
  for (std::uint64_t number = 1;; ++number) {
    std::uint64_t offset = lines.offset();
    PIPER_ASSIGN(const bool found, lines.next(line));
    index.bytes = offset;
    if (!found) {
      break;
    }
    if (offset - told >= kChunk) {
      if (looked) {
        looked(offset - told);
      }
      told = offset;
      if (Clock::now() >= deadline) {
        return index;
      }
    }
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) {  // a byte-order mark
      line.remove_prefix(3);
      offset += 3;
    }
    const std::string_view row = trimmed(line);
    if (row.empty()) {
      continue;
    }
    if (!reader.read(line)) {
      return fail(wrong_row(file, static_cast<std::uint32_t>(number), line, reader.fault()));
    }
    const std::uint64_t empty = number - index.rows() - 1;
    if (empty != (index.gaps.empty() ? 0 : index.gaps.back().lines)) {
      index.gaps.push_back({index.rows(), empty});
    }
    statistics.add(reader);
    index.offsets.push_back(offset);
    index.hashes.push_back(mixed_hash(row));
  }
  index.bytes = file.source().bytes;
  index.offsets.shrink_to_fit();
  index.hashes.shrink_to_fit();
  index.counted.shrink_to_fit();
  if (looked) {
    looked(index.bytes - told);
  }
  return index;
}

bool within_limits(const RowIndex& index, const std::vector<RowColumn>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto [least, most] = index.ranges[i];
    if (columns[i].limit > 0 && least <= most && (least < 0 || most >= columns[i].limit)) {
      return false;
    }
  }
  return true;
}

Diagnostic wrong_row(const DataFile& file, std::uint32_t number, std::string_view line,
                     const RowFault& fault) {
  const std::string_view before = line.substr(0, fault.offset);
  const auto code_points = std::count_if(before.begin(), before.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  });
  return error(fault.code, fault.problem,
               {file.source().path, number, static_cast<std::uint32_t>(code_points) + 1});
}

}  // namespace piper
