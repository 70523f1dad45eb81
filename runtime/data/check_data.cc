#include "runtime/data/check_data.h"

#include <algorithm>

#include "runtime/data/held_out.h"
#include "runtime/data/inspect.h"
#include "runtime/data/jsonl.h"
#include "runtime/data/text.h"
#include "runtime/data/validation_remarks.h"
#include "runtime/metrics/display.h"

namespace piper {
namespace {

Clock::time_point deadline_of(const DataLook& look) {
  return look.whole ? Clock::time_point::max() : Clock::now() + look.time;
}

std::string counted(std::uint64_t count, const std::string& thing) {
  return grouped(static_cast<std::int64_t>(count)) + ' ' + thing + (count == 1 ? "" : "s");
}

std::string looked_at(std::uint64_t looked, std::uint64_t all, bool exact,
                      const std::string& thing) {
  if (looked == all && exact) {
    return "data: looked at all of " + counted(all, thing);
  }
  return "data: looked at " + grouped(static_cast<std::int64_t>(looked)) + " of " +
         (exact ? "" : "about ") + counted(all, thing) + " (a run looks at all before it starts)";
}

Expected<DataReport> check_text(const Config& config, const ModelGraph& model,
                                const DataLook& look) {
  const Clock::time_point deadline = deadline_of(look);
  PIPER_ASSIGN(const TextLayout layout, lay_out_text(config, model));
  PIPER_TRY(enough_rows(config, layout.rows[static_cast<int>(Part::training)]));
  DataReport report;
  report.remarks = validation_remarks(config, layout.rows[static_cast<int>(Part::held_out)]);
  std::uint64_t looked = 0, strange = 0;
  std::string first, what, start;
  for (const SourceFile& source : layout.files) {
    if (Clock::now() >= deadline) {
      break;
    }
    PIPER_ASSIGN(const DataFile file,
                 DataFile::open(source, config.where("training.dataset_path")));
    start.resize(std::min<std::uint64_t>(source.bytes, kInspected));
    PIPER_TRY(file.read(0, start.size(), start.data()));
    if (std::string kind = not_text(start); !kind.empty() && strange++ == 0) {
      first = source.path;
      what = std::move(kind);
    }
    ++looked;
  }
  if (strange > 0) {
    report.remarks.push_back(
        warning("data.not_text",
                counted(strange, "file") + " of " + std::to_string(layout.files.size()) +
                    (strange == 1 ? " is not text but " : " are not text, the first is ") + what +
                    ": dataset = \"text\" trains on the bytes as they are",
                {first, 0, 0}));
  }
  report.looked_at = looked_at(looked, layout.files.size(), true, "file");
  return report;
}

Expected<DataReport> check_jsonl(const Config& config, const ModelGraph& model,
                                 const DataLook& look) {
  PIPER_ASSIGN(const JsonlRows rows, look_at_rows(config, model, deadline_of(look), look.progress));
  DataReport report;
  std::uint64_t unshifted = 0;
  Location first;
  for (std::size_t i = 0; i < rows.files.size(); ++i) {
    const RowIndex& index = rows.indexes[i];
    if (index.unshifted > 0 && unshifted == 0) {
      first = {rows.files[i].source().path, index.line(index.first_unshifted), 0};
    }
    unshifted += index.unshifted;
  }
  if (2 * unshifted > rows.rows()) {  // a row of one token over and over is shifted and the same
    report.remarks.push_back(warning(
        "data.unshifted_labels",
        "in " + counted(unshifted, "row") + " of " +
            grouped(static_cast<std::int64_t>(rows.rows())) +
            " the labels are the tokens themselves: expected at each place the token after it, "
            "since labels are used as they stand",
        first));
  }
  if (!rows.complete()) {
    const double all = static_cast<double>(rows.rows()) * static_cast<double>(rows.bytes) /
                       static_cast<double>(std::max<std::uint64_t>(rows.looked_at, 1));
    report.looked_at = looked_at(rows.rows(), static_cast<std::uint64_t>(all), false, "row");
    return report;  // the rest is looked at when the job starts
  }
  const auto all = static_cast<std::int64_t>(rows.rows());
  const std::int64_t held_out = held_out_of_rows(all, config.validation.fraction);
  PIPER_TRY(enough_rows(config, all - held_out));
  for (Diagnostic& remark : validation_remarks(config, held_out)) {
    report.remarks.push_back(std::move(remark));
  }
  report.looked_at = looked_at(rows.rows(), rows.rows(), true, "row");
  return report;
}

}  // namespace

Expected<DataReport> check_data(const Config& config, const ModelGraph& model,
                                const DataLook& look) {
  return config.training.dataset == Dataset::text ? check_text(config, model, look)
                                                  : check_jsonl(config, model, look);
}

}  // namespace piper
