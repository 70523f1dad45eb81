// Just enough JSON to read tables of schedules: values with their places. Throws Malformed.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "table.h"

namespace schedule_file {

struct Json {
  enum class Type : std::uint8_t { null, boolean, number, text, list, object };
  Type type = Type::null;
  bool boolean = false;
  double number = 0;
  std::string text;
  std::vector<Json> items;                            // of a list
  std::vector<std::pair<std::string, Json>> members;  // of an object, in the file's order
  Position where;

  const Json* find(std::string_view name) const;  // of an object; null: not there
};

Json parse_json(std::string_view text);

// Which table of a file: as many ranks and micro-batches as the job has.
struct Wanted {
  std::uint32_t ranks = 1, microbatches = 1;
  std::size_t number = 0;  // the how many-th table of the file, from 1; 0: the only one that fits
};

// {"ranks", "microbatches", "per_rank", "mapping"}, or a list of those under "tables".
Table read_json(std::string_view text, const Wanted& wanted);

}  // namespace schedule_file
