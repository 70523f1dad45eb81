// A picture of what depends on what: regions of a model, nodes of a DAG, tasks of a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/pipeline.h"
#include "core/show/palette.h"

namespace piper {

struct DiagramNode {
  std::string label;
  std::string title;  // shown on hovering
  bool round = true;  // compute is round, communication and inputs have corners
  Colour fill;
  std::uint32_t cluster = 0;
  std::uint32_t level = 0;  // longest way from a source: see set_levels
};

struct DiagramEdge {
  std::uint32_t from = 0, to = 0;
  bool temporal = false;  // order only: dashed
  std::string label;
};

struct Diagram {
  std::string title;
  std::vector<std::string> facts;
  std::vector<std::string> clusters;  // places
  std::vector<DiagramNode> nodes;
  std::vector<DiagramEdge> edges;
};

// Longest paths; edges of a cycle count as far as they can.
void set_levels(Diagram& diagram);

std::string dot(const Diagram& diagram);  // for Graphviz

// What the planner has after a phase. `rank`: only what that rank has. Error show.too_large.
Expected<Diagram> diagram(const Phase& phase, std::int64_t rank = -1);

}  // namespace piper
