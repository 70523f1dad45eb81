#include "runtime/data/jsonl.h"

#include <algorithm>

#include "runtime/data/held_out.h"
#include "runtime/data/index_cache.h"

namespace piper {
namespace {

constexpr std::chrono::milliseconds kQuiet{700};  // a look that is shorter is not worth a word

class JsonlDataset final : public RowSource {
 public:
  JsonlDataset(JsonlRows rows, double fraction) : rows_(std::move(rows)) {
    std::vector<std::uint64_t> hashes;
    for (RowIndex& index : rows_.indexes) {
      starts_.push_back(count_);
      count_ += static_cast<std::int64_t>(index.rows());
      if (fraction > 0) {
        hashes.insert(hashes.end(), index.hashes.begin(), index.hashes.end());
      }
      index.hashes = {};
    }
    held_out_ = divide_rows(hashes, fraction);
    for (std::size_t i = 0; i < rows_.columns.size(); ++i) {
      labels_per_row_ += rows_.columns[i].field.labels ? rows_.columns[i].field.elements() : 0;
    }
  }

  std::int64_t rows(Part part) const override {
    const auto held_out = static_cast<std::int64_t>(held_out_.size());
    return part == Part::training ? count_ - held_out : held_out;
  }

  Status read(Part part, std::int64_t row, const Field& field, std::byte* to) const override {
    const auto column = static_cast<std::size_t>(
        std::find_if(rows_.columns.begin(), rows_.columns.end(),
                     [&](const RowColumn& known) { return known.field.value == field.value; }) -
        rows_.columns.begin());
    const Found found = find(part, row);
    const DataFile& file = rows_.files[found.file];
    const RowIndex& index = rows_.indexes[found.file];
    std::string line(index.length(found.row), '\0');
    PIPER_TRY(file.read(index.offsets[found.row], line.size(), line.data()));
    RowReader reader(rows_.columns);
    if (!reader.read(line, column)) {
      return fail(wrong_row(file, index.line(found.row), line, reader.fault()));
    }
    reader.write(column, to);
    return {};
  }

  std::int64_t counted_labels(Part part, std::int64_t row) const override {
    const Found found = find(part, row);
    return rows_.indexes[found.file].counted[found.row];
  }

  Location place_of(Part part, std::int64_t row) const override {
    const Found found = find(part, row);
    return {rows_.files[found.file].source().path, rows_.indexes[found.file].line(found.row), 0};
  }

  std::string describe() const override {
    const auto sizes = [&](Part part) {
      const std::int64_t count = rows(part);
      return std::to_string(count) + (count == 1 ? " row" : " rows") +
             (labels_per_row_ > 1 ? ", " + std::to_string(count * labels_per_row_) + " tokens"
                                  : "");
    };
    return "jsonl: " + sizes(Part::training) +
           "; held out: " + (held_out_.empty() ? "nothing" : sizes(Part::held_out));
  }

 private:
  struct Found {
    std::size_t file = 0, row = 0;
  };

  // Where the row is among all: the rows to train on are those between the held-out ones.
  std::int64_t number(Part part, std::int64_t row) const {
    if (part == Part::held_out) {
      return held_out_[static_cast<std::size_t>(row)];
    }
    std::size_t before = 0;  // held-out rows before it
    for (std::size_t step = std::size_t{1} << 32; step > 0; step /= 2) {
      const std::size_t next = before + step;
      if (next <= held_out_.size() &&
          held_out_[next - 1] - static_cast<std::int64_t>(next - 1) <= row) {
        before = next;
      }
    }
    return row + static_cast<std::int64_t>(before);
  }

  Found find(Part part, std::int64_t row) const {
    const std::int64_t wanted = number(part, row);
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), wanted);
    const auto file = static_cast<std::size_t>(after - starts_.begin()) - 1;
    return {file, static_cast<std::size_t>(wanted - starts_[file])};
  }

  JsonlRows rows_;
  std::vector<std::int64_t> starts_;     // by file: the number of its first row
  std::vector<std::uint32_t> held_out_;  // ascending
  std::int64_t count_ = 0, labels_per_row_ = 0;
};

}  // namespace

std::uint64_t JsonlRows::rows() const {
  std::uint64_t sum = 0;
  for (const RowIndex& index : indexes) {
    sum += index.rows();
  }
  return sum;
}

Expected<JsonlRows> look_at_rows(const Config& config, const ModelGraph& model,
                                 Clock::time_point deadline,
                                 const std::function<void(const std::string&)>& progress) {
  const Location where = config.where("training.dataset_path");
  JsonlRows rows;
  rows.columns = columns_of(config, model);
  PIPER_ASSIGN(const std::vector<SourceFile> found,
               find_files(config.training.dataset_path, where));
  PIPER_ASSIGN(rows.files, open_files(found, where));
  for (const SourceFile& file : found) {
    rows.bytes += file.bytes;
  }
  const Clock::time_point start = Clock::now();
  const auto looked = [&](std::uint64_t bytes) {
    rows.looked_at += bytes;
    if (progress && rows.bytes > 0 && Clock::now() - start > kQuiet) {
      progress("looking at the data: " + std::to_string(rows.looked_at * 100 / rows.bytes) + "%");
    }
  };
  for (const DataFile& file : rows.files) {
    const IndexCache cache(file.source(), rows.columns);
    std::optional<RowIndex> index = cache.load();
    if (index && within_limits(*index, rows.columns)) {
      looked(index->bytes);
    } else if (index || rows.looked_at == 0 || Clock::now() < deadline) {
      // An id that is known to be wrong is looked for, however long that takes.
      const Clock::time_point until = index ? Clock::time_point::max() : deadline;
      PIPER_ASSIGN(index, index_rows(file, rows.columns, until, looked));
      if (index->bytes == file.source().bytes) {
        cache.store(*index);
      }
    }
    rows.indexes.push_back(index ? *std::move(index) : RowIndex());
  }
  if (rows.complete() && rows.rows() == 0) {
    return fail(
        error("data.too_short", "the files have no rows: expected one JSON object a line", where));
  }
  return rows;
}

Expected<std::unique_ptr<RowSource>> load_jsonl(const Config& config, const ModelGraph& model) {
  PIPER_ASSIGN(JsonlRows rows, look_at_rows(config, model));
  return std::make_unique<JsonlDataset>(std::move(rows), config.validation.fraction);
}

}  // namespace piper
