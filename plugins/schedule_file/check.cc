#include "check.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace schedule_file {
namespace {

std::string at(const Position& where) {
  return std::to_string(where.line) + ":" + std::to_string(where.column);
}
std::string number(std::size_t value) {
  return std::to_string(value);
}

class Checker {
 public:
  Checker(const Table& table, const Expected& expected) : table_(table), expected_(expected) {}

  std::vector<std::uint32_t> run() {
    check_rows();
    count_stages();
    find_cells();
    check_left_out();
    check_mapping();
    check_run();
    return rank_of_;
  }

 private:
  // What one stage and micro-batch has, by Kind.
  using Cells = std::array<const Cell*, 4>;

  [[noreturn]] static void fail(const Cell& cell, const std::string& what) {
    throw Malformed(cell.where, to_string(cell) + ": " + what);
  }

  void check_rows() const {
    if (table_.rows.size() != expected_.ranks) {
      throw Malformed(
          table_.rows.size() > expected_.ranks ? table_.row_where[expected_.ranks] : table_.end,
          "expected " + number(expected_.ranks) + " rows, one a rank of " + expected_.ranks_name +
              ", got " + number(table_.rows.size()));
    }
    for (std::size_t rank = 0; rank < table_.rows.size(); ++rank) {
      const auto& row = table_.rows[rank];
      if (std::none_of(row.begin(), row.end(), [](const Cell& c) { return is_compute(c.kind); })) {
        throw Malformed(table_.row_where[rank], "rank " + number(rank) + " computes nothing");
      }
    }
  }

  template <typename Visit>
  void each_computation(Visit&& visit) const {
    for (std::uint32_t rank = 0; rank < table_.rows.size(); ++rank) {
      for (const Cell& cell : table_.rows[rank]) {
        if (is_compute(cell.kind)) {
          visit(rank, cell);
        }
      }
    }
  }

  // A stage that nothing computes would leave a hole; there can be no more stages than cells.
  void count_stages() {
    std::size_t cells = 0;
    each_computation([&](std::uint32_t, const Cell&) { ++cells; });
    std::vector<bool> present;
    each_computation([&](std::uint32_t, const Cell& cell) {
      if (cell.stage >= cells) {
        fail(cell, "expected stages 0, 1, ... without gaps");
      }
      present.resize(std::max<std::size_t>(present.size(), cell.stage + 1));
      present[cell.stage] = true;
    });
    const auto hole = std::find(present.begin(), present.end(), false);
    if (hole != present.end()) {
      throw Malformed(table_.end, "expected stages 0 to " + number(present.size() - 1) +
                                      ", but none computes stage " +
                                      number(static_cast<std::size_t>(hole - present.begin())));
    }
    stages_ = static_cast<std::uint32_t>(present.size());
  }

  bool second_half(const Cell& cell) const { return cell.microbatch >= expected_.microbatches / 2; }

  // The rank that a stage's other micro-batches have shown; none yet: this one.
  void check_rank(std::uint32_t rank, const Cell& cell) {
    const bool opposite = expected_.mapping == Mapping::bidirectional && second_half(cell);
    const std::uint32_t home = opposite ? expected_.ranks - 1 - rank : rank;
    const Cell*& first = first_[cell.stage];
    if (first == nullptr) {
      first = &cell;
      rank_of_[cell.stage] = home;
    } else if (rank_of_[cell.stage] != home && expected_.mapping == Mapping::bidirectional) {
      fail(cell, "expected micro-batches below " + number(expected_.microbatches / 2) +
                     " of a stage on one rank and the others on the opposite one with this "
                     "mapping; " +
                     to_string(*first) + " is at " + at(first->where));
    } else if (rank_of_[cell.stage] != home) {
      fail(cell, "stage " + number(cell.stage) + " is on rank " + number(rank) +
                     " here, and on another with " + to_string(*first) + " at " + at(first->where) +
                     "; expected one rank a stage");
    }
  }

  void find_cells() {
    cells_.assign(stages_ * std::size_t{expected_.microbatches}, Cells{});
    first_.assign(stages_, nullptr);
    rank_of_.assign(stages_, 0);
    each_computation([&](std::uint32_t rank, const Cell& cell) {
      if (cell.microbatch >= expected_.microbatches) {
        fail(cell, "expected a micro-batch below " + number(expected_.microbatches));
      }
      check_rank(rank, cell);
      Cells& own = cells_[index(cell.stage, cell.microbatch)];
      check_before(cell, own);
      own[static_cast<std::size_t>(cell.kind)] = &cell;
    });
  }

  // What must, and must not, have been there before this cell. All cells of a stage and micro-batch
  // are in one row.
  static void check_before(const Cell& cell, const Cells& own) {
    const auto [forward, backward, input, weight] = own;
    const Cell* same = own[static_cast<std::size_t>(cell.kind)];
    if (same != nullptr) {
      fail(cell, "is there twice, first at " + at(same->where));
    }
    if (cell.kind == Kind::forward && (backward != nullptr || input != nullptr)) {
      fail(cell, "comes after its backward at " + at((backward ? backward : input)->where));
    }
    if (cell.kind != Kind::forward && forward == nullptr) {
      fail(cell, "comes before the forward of its micro-batch, or without one");
    }
    if (cell.kind != Kind::forward && cell.overlap != 0 && forward->overlap == cell.overlap) {
      fail(cell, "is in one pair with " + to_string(*forward) + ", which it needs");
    }
    if (cell.kind == Kind::backward_weight && input == nullptr) {
      fail(cell, "comes before the I of its micro-batch, or without one");
    }
    const Cell* other = cell.kind == Kind::backward ? input : backward;
    if (cell.kind != Kind::forward && other != nullptr) {
      fail(cell, "expected B, or I and W, of a micro-batch; " + to_string(*other) +
                     " is there at " + at(other->where));
    }
  }

  // The place for what is missing: the end of its rank's row.
  Position row_end(std::uint32_t stage, std::uint32_t microbatch) const {
    const bool opposite =
        expected_.mapping == Mapping::bidirectional && microbatch >= expected_.microbatches / 2;
    const std::uint32_t home = rank_of_[stage];
    return table_.rows[opposite ? expected_.ranks - 1 - home : home].back().where;
  }

  void check_left_out() const {
    for (std::uint32_t s = 0; s < stages_; ++s) {
      for (std::uint32_t m = 0; m < expected_.microbatches; ++m) {
        const auto [forward, backward, input, weight] = cells_[index(s, m)];
        const std::string name = "stage " + number(s) + " micro-batch " + number(m);
        if (forward == nullptr) {
          throw Malformed(row_end(s, m), name + " is left out of this row");
        }
        if (backward == nullptr && input == nullptr) {
          fail(*forward, "its backward is left out");
        }
        if (input != nullptr && weight == nullptr) {
          fail(*input, "its W is left out");
        }
      }
    }
  }

  std::uint32_t wanted_rank(std::uint32_t stage) const {
    const std::uint32_t ranks = expected_.ranks;
    const bool returns = expected_.mapping == Mapping::v && stage >= ranks;
    return returns ? 2 * ranks - 1 - stage : stage % ranks;
  }

  void check_mapping() const {
    if (expected_.mapping == Mapping::any) {
      return;
    }
    const bool v = expected_.mapping == Mapping::v;
    if ((v && stages_ != 2 * expected_.ranks) ||
        (expected_.mapping == Mapping::bidirectional && stages_ != expected_.ranks)) {
      throw Malformed(table_.row_where.front(),
                      "expected " + number(v ? 2 * expected_.ranks : expected_.ranks) +
                          " stages with this mapping, got " + number(stages_));
    }
    for (std::uint32_t s = 0; s < stages_; ++s) {
      if (rank_of_[s] != wanted_rank(s)) {
        fail(*first_[s], "expected stage " + number(s) + " on rank " + number(wanted_rank(s)) +
                             " with this mapping, got rank " + number(rank_of_[s]));
      }
    }
  }

  // What a computation needs that is not there yet.
  std::optional<std::string> missing(const Cell& cell) const {
    const bool last = cell.stage + 1 == stages_;
    if (cell.kind == Kind::forward && cell.stage > 0 &&
        !forward_done_[index(cell.stage - 1, cell.microbatch)]) {
      return number(cell.stage - 1) + "F" + number(cell.microbatch);
    }
    if ((cell.kind == Kind::backward || cell.kind == Kind::backward_input) && !last &&
        !backward_done_[index(cell.stage + 1, cell.microbatch)]) {
      return "the backward of stage " + number(cell.stage + 1) + " micro-batch " +
             number(cell.microbatch);
    }
    return std::nullopt;
  }

  // An overlapped pair starts when both of its parts can.
  bool step(const std::vector<Cell>& row, std::size_t& next) {
    std::size_t end = next + 1;
    while (end < row.size() && row[next].overlap != 0 && row[end].overlap == row[next].overlap) {
      ++end;
    }
    for (std::size_t i = next; i < end; ++i) {
      if (is_compute(row[i].kind) && missing(row[i])) {
        return false;
      }
    }
    for (; next < end; ++next) {
      const Cell& cell = row[next];
      if (cell.kind == Kind::forward) {
        forward_done_[index(cell.stage, cell.microbatch)] = true;
      } else if (cell.kind == Kind::backward || cell.kind == Kind::backward_input) {
        backward_done_[index(cell.stage, cell.microbatch)] = true;
      }
    }
    return true;
  }

  void check_run() {
    forward_done_.assign(cells_.size(), false);
    backward_done_.assign(cells_.size(), false);
    std::vector<std::size_t> next(table_.rows.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < table_.rows.size(); ++rank) {
        while (next[rank] < table_.rows[rank].size() && step(table_.rows[rank], next[rank])) {
          moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < table_.rows.size(); ++rank) {
      for (std::size_t i = next[rank]; i < table_.rows[rank].size(); ++i) {
        if (const auto what = missing(table_.rows[rank][i])) {
          fail(table_.rows[rank][i], "rank " + number(rank) + " would wait here for ever, for " +
                                         *what + ": the rows wait for each other");
        }
      }
    }
  }

  std::size_t index(std::uint32_t stage, std::uint32_t microbatch) const {
    return stage * std::size_t{expected_.microbatches} + microbatch;
  }

  const Table& table_;
  const Expected& expected_;
  std::uint32_t stages_ = 0;
  std::vector<Cells> cells_;            // by stage and micro-batch
  std::vector<const Cell*> first_;      // by stage: its first cell
  std::vector<std::uint32_t> rank_of_;  // by stage
  std::vector<bool> forward_done_, backward_done_;
};

}  // namespace

std::vector<std::uint32_t> check(const Table& table, const Expected& expected) {
  return Checker(table, expected).run();
}

}  // namespace schedule_file
