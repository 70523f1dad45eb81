// Lays a diagram out: a lane for each place, levels from left to right. An edge that passes levels
// takes a thin place in each, which edges from one node share, so that lines go around nodes. What
// is stacked in a lane is in the order of the mean of its neighbours, by sweeps to and fro, so that
// lines cross little (the layered method of Sugiyama, Tagawa and Toda, 1981).
#include <algorithm>
#include <map>
#include <utility>

#include "core/show/diagram.h"
#include "core/show/svg.h"

namespace piper {
namespace {

constexpr double kMargin = 24, kTitle = 15, kText = 10, kFact = 11, kLabel = 8;
constexpr double kHeight = 22, kThin = 6, kStack = 9, kColumnGap = 56, kLaneGap = 14;
constexpr double kLanePad = 12, kLaneLabel = 16;
constexpr std::string_view kGrey = "#666666", kLane = "#f7f7f7", kEdge = "#555555";

class Layout {
 public:
  explicit Layout(const Diagram& diagram) : diagram_(diagram) {
    make_items();
    order_items();
    place_columns();
    place_lanes();
  }

  std::string write() {
    Svg out(width_, bottom_ + kMargin);
    double y = kMargin + kTitle - 3;
    out.text(kMargin, y, diagram_.title, {.size = kTitle, .bold = true});
    for (const std::string& fact : diagram_.facts) {
      y += kFact + 5;
      out.text(kMargin, y, fact, {.size = kFact, .fill = kGrey});
    }
    for (std::size_t lane = 0; lane < diagram_.clusters.size(); ++lane) {
      out.rectangle(kMargin, lane_top_[lane], width_ - 2 * kMargin, lane_height_[lane], kLane);
      out.text(kMargin + 8, lane_top_[lane] + 15, diagram_.clusters[lane],
               {.size = kFact, .bold = true});
    }
    for (std::size_t e = 0; e < diagram_.edges.size(); ++e) {
      draw_line(out, e);
    }
    for (std::size_t e = 0; e < diagram_.edges.size(); ++e) {
      draw_label(out, e);
    }
    for (std::uint32_t n = 0; n < diagram_.nodes.size(); ++n) {
      draw(out, diagram_.nodes[n], items_[n]);
    }
    return out.finish();
  }

 private:
  // A node, or the place where edges of one node pass a level.
  struct Item {
    std::uint32_t lane = 0, level = 0;
    double width = 0, height = kThin;
    double x = 0, y = 0;  // left, middle
    double place = 0;     // in its column, while they are ordered
    std::vector<std::uint32_t> before, after;
  };

  double right(std::uint32_t item) const { return items_[item].x + items_[item].width; }

  void make_items() {
    for (const DiagramNode& node : diagram_.nodes) {
      items_.push_back({node.cluster,
                        node.level,
                        std::max(34.0, text_width(node.label, kText) + (node.round ? 20 : 12)),
                        kHeight,
                        0,
                        0,
                        0,
                        {},
                        {}});
      levels_ = std::max(levels_, node.level + 1);
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> passes;  // node, level
    for (const DiagramEdge& edge : diagram_.edges) {
      std::vector<std::uint32_t>& way = ways_.emplace_back();
      way.push_back(edge.from);
      for (std::uint32_t level = diagram_.nodes[edge.from].level + 1;
           level < diagram_.nodes[edge.to].level; ++level) {
        const auto next = static_cast<std::uint32_t>(items_.size());
        const auto [pass, is_new] = passes.try_emplace({edge.from, level}, next);
        if (is_new) {
          items_.push_back({diagram_.nodes[edge.from].cluster, level, 0, kThin, 0, 0, 0, {}, {}});
        }
        way.push_back(pass->second);
      }
      way.push_back(edge.to);
      for (std::size_t i = 1; i < way.size(); ++i) {
        items_[way[i - 1]].after.push_back(way[i]);
        items_[way[i]].before.push_back(way[i - 1]);
      }
    }
  }

  void order_items() {
    columns_.resize(levels_);
    for (std::uint32_t i = 0; i < items_.size(); ++i) {
      columns_[items_[i].level].push_back(i);
    }
    for (auto& column : columns_) {
      number(column);
    }
    for (int sweep = 0; sweep < 4; ++sweep) {
      for (std::uint32_t i = 0; i < levels_; ++i) {
        const bool forward = sweep % 2 == 0;
        sort(columns_[forward ? i : levels_ - 1 - i], forward);
      }
    }
  }

  // Places run from 0 to 1, so that short and long columns compare.
  void number(const std::vector<std::uint32_t>& column) {
    for (std::size_t i = 0; i < column.size(); ++i) {
      items_[column[i]].place = (static_cast<double>(i) + 0.5) / static_cast<double>(column.size());
    }
  }

  void sort(std::vector<std::uint32_t>& column, bool forward) {
    std::vector<double> mean(items_.size(), 0);
    for (const std::uint32_t i : column) {
      const std::vector<std::uint32_t>& others = forward ? items_[i].before : items_[i].after;
      mean[i] = items_[i].place;
      if (!others.empty()) {
        double sum = 0;
        for (const std::uint32_t other : others) {
          sum += items_[other].place;
        }
        mean[i] = sum / static_cast<double>(others.size());
      }
    }
    std::stable_sort(column.begin(), column.end(), [&](std::uint32_t a, std::uint32_t b) {
      return items_[a].lane != items_[b].lane ? items_[a].lane < items_[b].lane : mean[a] < mean[b];
    });
    number(column);
  }

  void place_columns() {
    double x = kMargin + kLanePad;
    for (const std::vector<std::uint32_t>& column : columns_) {
      double widest = 0;
      for (const std::uint32_t i : column) {
        widest = std::max(widest, items_[i].width);
      }
      for (const std::uint32_t i : column) {
        items_[i].x = x + (widest - items_[i].width) / 2;
      }
      x += widest + kColumnGap;
    }
    width_ = x - kColumnGap + kLanePad + kMargin;
    const auto fit = [&](std::string_view text, double size, bool bold) {
      width_ = std::max(width_, 2 * kMargin + 16 + text_width(text, size, bold));
    };
    fit(diagram_.title, kTitle, true);
    for (const std::string& fact : diagram_.facts) {
      fit(fact, kFact, false);
    }
    for (const std::string& lane : diagram_.clusters) {
      fit(lane, kFact, true);
    }
  }

  // Stacks are centred in their lane.
  void place_lanes() {
    const std::size_t lanes = diagram_.clusters.size();
    std::vector<std::vector<double>> heights(lanes, std::vector<double>(levels_, 0));
    for (const Item& item : items_) {
      heights[item.lane][item.level] += item.height + kStack;
    }
    double y = kMargin + kTitle + static_cast<double>(diagram_.facts.size()) * (kFact + 5) + 12;
    std::vector<double> middle;
    for (const std::vector<double>& lane : heights) {
      const double tallest =
          std::max(kHeight, *std::max_element(lane.begin(), lane.end()) - kStack);
      lane_top_.push_back(y);
      lane_height_.push_back(kLaneLabel + 2 * kLanePad + tallest);
      middle.push_back(y + kLaneLabel + kLanePad + tallest / 2);
      y += lane_height_.back() + kLaneGap;
    }
    bottom_ = y - kLaneGap;
    std::vector<std::vector<double>> used(lanes, std::vector<double>(levels_, 0));
    for (const std::vector<std::uint32_t>& column : columns_) {
      for (const std::uint32_t i : column) {
        Item& item = items_[i];
        const double stack = heights[item.lane][item.level] - kStack;
        double& top = used[item.lane][item.level];
        item.y = middle[item.lane] - stack / 2 + top + item.height / 2;
        top += item.height + kStack;
      }
    }
  }

  static void draw(Svg& out, const DiagramNode& node, const Item& at) {
    const double radius = node.round ? kHeight / 2 : 2;
    out.raw("<rect x=\"" + svg_number(at.x) + "\" y=\"" + svg_number(at.y - kHeight / 2) +
            "\" width=\"" + svg_number(at.width) + "\" height=\"" + svg_number(kHeight) +
            "\" rx=\"" + svg_number(radius) + "\" fill=\"" + to_string(node.fill) +
            "\" stroke=\"#555555\" stroke-width=\"0.6\"><title>" + xml_escaped(node.title) +
            "</title></rect>\n");
    out.text(at.x + at.width / 2, at.y + kText * 0.36, node.label,
             {.size = kText, .anchor = "middle"});
  }

  // A curve along its way, with a small arrow head.
  void draw_line(Svg& out, std::size_t e) const {
    const std::vector<std::uint32_t>& way = ways_[e];
    double x = right(way.front()), y = items_[way.front()].y;
    std::string path = "M" + svg_number(x) + ' ' + svg_number(y);
    for (std::size_t i = 1; i < way.size(); ++i) {
      const bool is_last = i + 1 == way.size();
      const double next_x = items_[way[i]].x - (is_last ? 4 : 0), next_y = items_[way[i]].y;
      const double bend = (next_x - x) * 0.5;
      path += " C" + svg_number(x + bend) + ' ' + svg_number(y) + ' ' + svg_number(next_x - bend) +
              ' ' + svg_number(next_y) + ' ' + svg_number(next_x) + ' ' + svg_number(next_y);
      x = next_x;
      y = next_y;
    }
    const bool temporal = diagram_.edges[e].temporal;
    const std::string stroke = std::string(kEdge) + "\" stroke-width=\"0.8\"";
    out.raw("<path d=\"" + path + "\" fill=\"none\" stroke=\"" + stroke +
            (temporal ? " stroke-dasharray=\"3 3\" stroke-opacity=\"0.7\"/>\n" : "/>\n"));
    out.raw("<path d=\"M" + svg_number(x + 4) + ' ' + svg_number(y) + " l-5 -2.5 v5 z\" fill=\"" +
            std::string(kEdge) + "\"/>\n");
  }

  // On the last piece of the line, on a ground of the lane's colour; left out where every place is
  // taken.
  void draw_label(Svg& out, std::size_t e) {
    const DiagramEdge& edge = diagram_.edges[e];
    if (edge.label.empty()) {
      return;
    }
    const std::vector<std::uint32_t>& way = ways_[e];
    const double x1 = right(way[way.size() - 2]), y1 = items_[way[way.size() - 2]].y;
    const double x2 = items_[way.back()].x, y2 = items_[way.back()].y;
    const double width = text_width(edge.label, kLabel);
    for (const double t : {0.5, 0.3, 0.7, 0.15, 0.85}) {  // along the curve of draw_line
      const double x = x1 + (x2 - x1) * (1.5 * t * (1 - t) + t * t * t);
      const double y = y1 + (y2 - y1) * (3 * (1 - t) * t * t + t * t * t);
      const Label label{x - width / 2, y - kLabel / 2, width};
      if (std::none_of(labels_.begin(), labels_.end(),
                       [&](const Label& other) { return overlap(label, other); })) {
        labels_.push_back(label);
        out.rectangle(label.x, label.y, width, kLabel, kLane);
        out.text(x, y + kLabel * 0.36, edge.label,
                 {.size = kLabel, .anchor = "middle", .fill = kGrey});
        return;
      }
    }
  }

  struct Label {
    double x, y, width;
  };
  static bool overlap(const Label& a, const Label& b) {
    return a.x < b.x + b.width + 2 && b.x < a.x + a.width + 2 && a.y < b.y + kLabel + 1 &&
           b.y < a.y + kLabel + 1;
  }

  const Diagram& diagram_;
  std::uint32_t levels_ = 0;
  std::vector<Item> items_;                          // nodes first
  std::vector<std::vector<std::uint32_t>> ways_;     // by edge: items from end to end
  std::vector<std::vector<std::uint32_t>> columns_;  // by level: items from top to bottom
  std::vector<double> lane_top_, lane_height_;
  std::vector<Label> labels_;
  double width_ = 0, bottom_ = 0;
};

}  // namespace

std::string svg(const Diagram& diagram) {
  return Layout(diagram).write();
}

}  // namespace piper
