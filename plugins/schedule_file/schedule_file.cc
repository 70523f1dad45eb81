// A pipeline whose order is in a file: PyTorch's and TorchTitan's CSV, or JSON with tables.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "check.h"
#include "json.h"
#include "pipeline.h"
#include "table.h"

namespace schedule_file {
namespace {

using piper::sdk::Job;
using piper::sdk::Option;

std::string read_file(const Job& job, const Option<std::string_view>& path) {
  std::error_code error;
  std::ifstream file{std::string(path.value), std::ios::binary};
  if (!file || !std::filesystem::is_regular_file(path.value, error)) {
    job.fail("path", "expected a file that can be read, got '" + std::string(path.value) + "'",
             path.where);
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool is_json(const Job& job, std::string_view text) {
  const std::string_view format = job.get_str("format").value;
  if (format != "auto") {
    return format == "json";
  }
  const std::size_t first = text.find_first_not_of("\xef\xbb\xbf \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

Table read_table(const Job& job, std::string_view text, std::uint32_t ranks) {
  if (!is_json(job, text)) {
    return read_csv(text);
  }
  Wanted wanted{ranks, job.microbatches()};
  if (job.has("table")) {
    wanted.number = static_cast<std::size_t>(job.get_i64("table").value);
  }
  return read_json(text, wanted);
}

// Of option `mapping`; without it, of the table.
Mapping mapping_of(const Job& job, const Table& table) {
  const std::string_view option = job.get_str("mapping").value;
  const std::string_view name = option == "auto" ? std::string_view(table.mapping) : option;
  return name == "loop"            ? Mapping::loop
         : name == "v"             ? Mapping::v
         : name == "bidirectional" ? Mapping::bidirectional
                                   : Mapping::any;
}

std::vector<pipeline::Row> rows_of(const Table& table) {
  constexpr piper_pass kPasses[] = {PIPER_FORWARD, PIPER_BACKWARD, PIPER_BACKWARD_INPUT,
                                    PIPER_BACKWARD_WEIGHT};
  std::vector<pipeline::Row> rows;
  for (const std::vector<Cell>& cells : table.rows) {
    rows.emplace_back();
    for (const Cell& cell : cells) {
      if (is_compute(cell.kind)) {
        rows.back().add(cell.stage, cell.microbatch, kPasses[static_cast<std::size_t>(cell.kind)],
                        cell.overlap);
      }
    }
  }
  return rows;
}

void plan(Job& job) {
  const auto axis = pipeline::axis_of(job);
  const auto path = job.get_str("path");
  const std::string name(path.value);
  try {
    const Table table = read_table(job, read_file(job, path), axis.size);
    const Mapping mapping = mapping_of(job, table);
    const std::string ranks_name = std::string(axis.name) + " = " + std::to_string(axis.size);
    const pipeline::Homes homes{check(table, {axis.size, job.microbatches(), ranks_name, mapping}),
                                mapping == Mapping::bidirectional};
    for (const std::string& difference :
         differences(table, homes.rank, mapping, job.microbatches())) {
      job.warn("differs", name + ":" + difference + " (the plan is made from computations alone)",
               path.where);
    }
    propose(job, homes, rows_of(table));
  } catch (const Malformed& malformed) {
    job.fail("malformed",
             name + ":" + std::to_string(malformed.where.line) + ":" +
                 std::to_string(malformed.where.column) + ": " + malformed.what(),
             path.where);
  }
}

}  // namespace
}  // namespace schedule_file

PIPER_STRATEGY(schedule_file::plan)
