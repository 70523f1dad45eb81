#include "core/show/diagram.h"

#include <algorithm>

namespace piper {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

std::string number(std::uint32_t value) {
  return std::to_string(value);
}

}  // namespace

void set_levels(Diagram& diagram) {
  std::vector<std::uint32_t> before(diagram.nodes.size(), 0);
  std::vector<std::vector<std::uint32_t>> after(diagram.nodes.size());
  for (const DiagramEdge& edge : diagram.edges) {
    ++before[edge.to];
    after[edge.from].push_back(edge.to);
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t n = 0; n < before.size(); ++n) {
    diagram.nodes[n].level = 0;
    if (before[n] == 0) {
      ready.push_back(n);
    }
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (const std::uint32_t next : after[ready[i]]) {
      DiagramNode& node = diagram.nodes[next];
      node.level = std::max(node.level, diagram.nodes[ready[i]].level + 1);
      if (--before[next] == 0) {
        ready.push_back(next);
      }
    }
  }
}

std::string dot(const Diagram& diagram) {
  std::string out = "digraph piper {\n  label=" + quoted(diagram.title) +
                    " labelloc=t rankdir=LR newrank=true nodesep=0.2 ranksep=0.35\n"
                    "  graph [fontname=\"Helvetica\" fontsize=14 color=\"#bbbbbb\"]\n"
                    "  node [fontname=\"Helvetica\" fontsize=11 style=filled color=\"#555555\" "
                    "penwidth=0.6 height=0.3 margin=\"0.08,0.04\"]\n"
                    "  edge [fontname=\"Helvetica\" fontsize=9 color=\"#555555\" "
                    "fontcolor=\"#666666\" arrowsize=0.6 penwidth=0.8]\n";
  std::uint32_t levels = 0;
  for (std::uint32_t c = 0; c < diagram.clusters.size(); ++c) {
    out += "  subgraph cluster_" + number(c) + " {\n    label=" + quoted(diagram.clusters[c]) +
           " labeljust=l fontsize=12 style=rounded\n";
    for (std::uint32_t n = 0; n < diagram.nodes.size(); ++n) {
      const DiagramNode& node = diagram.nodes[n];
      levels = std::max(levels, node.level + 1);
      if (node.cluster == c) {
        out += "    n" + number(n) + " [label=" + quoted(node.label) +
               (node.round ? " shape=ellipse" : " shape=box") + " fillcolor=\"" +
               to_string(node.fill) + "\"" +
               (node.title.empty() ? "" : " tooltip=" + quoted(node.title)) + "]\n";
      }
    }
    out += "  }\n";
  }
  std::vector<std::string> same(levels);
  for (std::uint32_t n = 0; n < diagram.nodes.size(); ++n) {
    same[diagram.nodes[n].level] += " n" + number(n) + ";";
  }
  for (const std::string& level : same) {
    out += "  { rank=same;" + level + " }\n";
  }
  for (const DiagramEdge& edge : diagram.edges) {
    out += "  n" + number(edge.from) + " -> n" + number(edge.to);
    if (edge.temporal) {
      out += " [style=dashed]";
    } else if (!edge.label.empty()) {
      out += " [label=" + quoted(edge.label) + "]";
    }
    out += '\n';
  }
  return out + "}\n";
}

}  // namespace piper
