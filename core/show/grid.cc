#include "core/show/grid.h"

#include <algorithm>
#include <cmath>

#include "core/show/svg.h"

namespace piper {
namespace {

constexpr double kMargin = 24, kTall = 26, kShort = 11, kGap = 2, kGroupGap = 12;
constexpr double kTitle = 15, kText = 11, kSmall = 9;
constexpr double kNarrowest = 460;  // of the grid itself
constexpr double kThinnest = 2.4;   // of a box that has room
constexpr std::string_view kGrey = "#666666", kRule = "#e4e4e4", kBand = "#f7f7f7";

// 1, 2 or 5 times a power of ten: the distance of about `count` marks.
double mark_distance(double length, double count) {
  const double rough = length / count, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (rough <= step * power) {
      return step * power;
    }
  }
  return 10 * power;
}

class GridWriter {
 public:
  explicit GridWriter(const Grid& grid) : grid_(grid) {
    for (const GridBox& box : grid.boxes) {
      end_ = std::max(end_, box.end);
    }
    end_ = end_ > 0 ? end_ : 1;
    unit_ = std::clamp(grid.unit * end_, std::min(kNarrowest, grid.widest), grid.widest) / end_;
    for (const GridRow& row : grid.rows) {
      group_width_ = std::max(group_width_, text_width(row.group, kText, /*bold=*/true));
      label_width_ = std::max(label_width_, text_width(row.label, row.tall ? kText : kSmall));
    }
    left_ = kMargin + group_width_ + (group_width_ > 0 ? 14 : 0) + label_width_ + 8;
    width_ = left_ + unit_ * end_ + kMargin;
    place_header();
    place_rows();
  }

  std::string write() {
    Svg out(width_, bottom_ + 40 + kMargin - 8);
    header(out);
    bands(out);
    axis(out);
    boxes(out);
    links(out);
    return out.finish();
  }

 private:
  struct Key {
    double x, y;
  };

  double x_of(double time) const { return left_ + unit_ * time; }
  double height_of(std::uint32_t row) const { return grid_.rows[row].tall ? kTall : kShort; }

  void place_header() {
    double y = kMargin + kTitle;
    y += static_cast<double>(grid_.facts.size()) * (kText + 5);
    double x = kMargin;
    y += 22;
    for (const GridKey& key : grid_.legend) {
      const double needed = 12 + 5 + text_width(key.label, kText);
      if (x > kMargin && x + needed > width_ - kMargin) {
        x = kMargin;
        y += kText + 7;
      }
      keys_.push_back({x, y});
      x += needed + 16;
    }
    top_ = y + 18;
    // Titles may be wider than a short grid.
    width_ = std::max(width_, 2 * kMargin + text_width(grid_.title, kTitle, /*bold=*/true));
    for (const std::string& fact : grid_.facts) {
      width_ = std::max(width_, 2 * kMargin + text_width(fact, kText));
    }
    width_ = std::max(width_, left_ + text_width(grid_.axis, kSmall) + kMargin);
  }

  void place_rows() {
    double y = top_;
    for (std::uint32_t r = 0; r < grid_.rows.size(); ++r) {
      const bool new_group = r > 0 && grid_.rows[r].group != grid_.rows[r - 1].group;
      y += r == 0 ? 0 : new_group ? kGroupGap : kGap;
      row_y_.push_back(y);
      y += height_of(r);
    }
    bottom_ = y;
  }

  void header(Svg& out) const {
    double y = kMargin + kTitle - 3;
    out.text(kMargin, y, grid_.title, {.size = kTitle, .bold = true});
    for (const std::string& fact : grid_.facts) {
      y += kText + 5;
      out.text(kMargin, y, fact, {.size = kText, .fill = kGrey});
    }
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      out.rectangle(keys_[k].x, keys_[k].y - 10, 12, 12, to_string(grid_.legend[k].fill));
      out.text(keys_[k].x + 17, keys_[k].y, grid_.legend[k].label, {.size = kText});
    }
  }

  // A light band behind each row, with its name.
  void bands(Svg& out) const {
    for (std::uint32_t r = 0; r < grid_.rows.size(); ++r) {
      const GridRow& row = grid_.rows[r];
      const double middle = row_y_[r] + height_of(r) / 2;
      out.rectangle(left_, row_y_[r], unit_ * end_, height_of(r), kBand);
      if (r == 0 || grid_.rows[r - 1].group != row.group) {
        out.text(kMargin, middle + 4, row.group, {.size = kText, .bold = true});
      }
      const double size = row.tall ? kText : kSmall;
      out.text(left_ - 8, middle + size * 0.36, row.label,
               {.size = size, .anchor = "end", .fill = row.tall ? "#222222" : kGrey});
    }
  }

  void axis(Svg& out) const {
    const double step = mark_distance(end_, std::clamp(unit_ * end_ / 70, 2.0, 24.0));
    for (double time = 0; time <= end_ * 1.0001; time += step) {
      out.line(x_of(time), top_ - 4, x_of(time), bottom_ + 5, kRule, 0.8);
      out.text(x_of(time), bottom_ + 17, svg_number(time),
               {.size = kSmall, .anchor = "middle", .fill = kGrey});
    }
    out.text(left_, bottom_ + 32, grid_.axis, {.size = kSmall, .fill = kGrey});
  }

  // A box too thin to see is widened as far as the next one of its row.
  void boxes(Svg& out) {
    std::vector<std::uint32_t> order(grid_.boxes.size());
    for (std::uint32_t b = 0; b < order.size(); ++b) {
      order[b] = b;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const GridBox &one = grid_.boxes[a], &two = grid_.boxes[b];
      return one.row != two.row ? one.row < two.row : one.begin < two.begin;
    });
    box_end_.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const GridBox& box = grid_.boxes[order[i]];
      const double x = x_of(box.begin), y = row_y_[box.row], height = height_of(box.row);
      const bool is_last = i + 1 == order.size() || grid_.boxes[order[i + 1]].row != box.row;
      const double room = (is_last ? end_ : grid_.boxes[order[i + 1]].begin) - box.begin;
      const double width =
          std::max(unit_ * (box.end - box.begin), std::min(kThinnest, unit_ * room));
      box_end_[order[i]] = x + width;
      out.rectangle(x, y, width, height, to_string(box.fill),
                    grid_.rows[box.row].tall ? "#ffffff" : "", box.title);
      if (grid_.rows[box.row].tall && box_width(box.label) <= width + 0.01) {
        out.text(x + width / 2, y + height / 2 + kText * 0.36, box.label,
                 {.size = kText, .anchor = "middle"});
      }
    }
  }

  // From the near edge of one row to the near edge of the other.
  void links(Svg& out) const {
    for (const GridLink& link : grid_.links) {
      const GridBox &from = grid_.boxes[link.from], &to = grid_.boxes[link.to];
      const bool down = row_y_[to.row] > row_y_[from.row];
      const double y1 = row_y_[from.row] + (down ? height_of(from.row) : 0);
      const double y2 = row_y_[to.row] + (down ? 0 : height_of(to.row));
      out.line(x_of(from.end), y1, x_of(to.begin), y2, "#333333", 0.5, 0.6);
    }
  }

  const Grid& grid_;
  double end_ = 0, unit_ = 0, left_ = 0, top_ = 0, bottom_ = 0, width_ = 0;
  double group_width_ = 0, label_width_ = 0;
  std::vector<double> row_y_, box_end_;
  std::vector<Key> keys_;
};

}  // namespace

double box_width(const std::string& label) {
  return text_width(label, kText) + 3;
}

std::string svg(const Grid& grid) {
  return GridWriter(grid).write();
}

}  // namespace piper
