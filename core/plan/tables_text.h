// The text of a plan's tables (all but its programs), which a DAG's text has too: from `train world
// 2 ...` to the last communicator.
#pragma once

#include <string>

#include "core/ir/text_reader.h"
#include "core/plan/plan.h"

namespace piper {

std::string print_tables(const Plan& plan, const ModelGraph& model);

// Stops before the first line that is none of a table. Numbers are not checked: they may be out of
// range.
void read_tables(TextReader& in, Plan& plan);

}  // namespace piper
