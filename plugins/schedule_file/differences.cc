#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "check.h"

namespace schedule_file {
namespace {

// A message, as the file names it: who (rank), what.
using Message = std::tuple<std::uint32_t, Kind, std::uint32_t, std::uint32_t>;

// The differences of one kind: the first, and how many.
class Findings {
 public:
  void add(const std::string& kind, const std::string& example) {
    auto [found, fresh] = counts_.try_emplace(kind, 0U, example);
    ++found->second.first;
    if (fresh) {
      order_.push_back(kind);
    }
  }
  std::vector<std::string> take() const {
    std::vector<std::string> lines;
    for (const std::string& kind : order_) {
      const auto& [count, example] = counts_.at(kind);
      lines.push_back(example + ": " + kind +
                      (count > 1 ? ", and " + std::to_string(count - 1) + " more" : ""));
    }
    return lines;
  }

 private:
  std::map<std::string, std::pair<std::size_t, std::string>> counts_;
  std::vector<std::string> order_;
};

std::string place(const Cell& cell) {
  return std::to_string(cell.where.line) + ":" + std::to_string(cell.where.column) + ": " +
         to_string(cell);
}

class Comparison {
 public:
  Comparison(const Table& table, const std::vector<std::uint32_t>& rank_of, Mapping mapping,
             std::uint32_t microbatches)
      : table_(table), rank_of_(rank_of), mapping_(mapping), microbatches_(microbatches) {}

  std::vector<std::string> run() {
    for (std::uint32_t rank = 0; rank < table_.rows.size(); ++rank) {
      messages(rank);
      gathers(table_.rows[rank]);
      reductions(table_.rows[rank]);
    }
    left_out();
    return findings_.take();
  }

 private:
  bool has(Kind first, Kind last) const {
    return std::any_of(table_.rows.begin(), table_.rows.end(), [&](const auto& row) {
      return std::any_of(row.begin(), row.end(),
                         [&](const Cell& cell) { return first <= cell.kind && cell.kind <= last; });
    });
  }

  std::uint32_t home(std::uint32_t stage, std::uint32_t microbatch) const {
    const bool opposite = mapping_ == Mapping::bidirectional && microbatch >= microbatches_ / 2;
    const auto ranks = static_cast<std::uint32_t>(table_.rows.size());
    return opposite ? ranks - 1 - rank_of_[stage] : rank_of_[stage];
  }

  // Whether stage `stage` exchanges values of the micro-batch with its neighbour on another rank.
  bool crosses(std::uint32_t stage, std::uint32_t microbatch, bool up) const {
    const auto stages = rank_of_.size();
    if (stage >= stages || microbatch >= microbatches_ || (up ? stage + 1 >= stages : stage == 0)) {
      return false;
    }
    return home(stage, microbatch) != home(up ? stage + 1 : stage - 1, microbatch);
  }

  static bool goes_up(Kind kind) {
    return kind == Kind::send_forward || kind == Kind::recv_backward;
  }

  // The messages that follow from a computation, before and after it.
  void derive(std::uint32_t rank, const Cell& cell, std::vector<Message>& received,
              std::vector<Message>& sent) const {
    const auto add = [&](Kind kind, std::vector<Message>& list) {
      if (crosses(cell.stage, cell.microbatch, goes_up(kind))) {
        list.emplace_back(rank, kind, cell.stage, cell.microbatch);
      }
    };
    if (cell.kind == Kind::forward) {
      add(Kind::recv_forward, received);
      add(Kind::send_forward, sent);
    } else if (cell.kind != Kind::backward_weight) {
      add(Kind::recv_backward, received);
      add(Kind::send_backward, sent);
    }
  }

  void messages(std::uint32_t rank) {
    if (!has(Kind::send_forward, Kind::recv_backward)) {
      return;
    }
    std::vector<Message> received, sent;  // that the computations so far have used and made
    for (const Cell& cell : table_.rows[rank]) {
      if (is_compute(cell.kind)) {
        derive(rank, cell, received, sent);
        derived_.insert(derived_.end(), received.begin(), received.end());
        derived_.insert(derived_.end(), sent.begin(), sent.end());
        used_.insert(received.begin(), received.end());
        made_.insert(sent.begin(), sent.end());
        received.clear();
        sent.clear();
      } else if (cell.kind <= Kind::recv_backward) {
        check_message(rank, cell);
      }
    }
  }

  void check_message(std::uint32_t rank, const Cell& cell) {
    const Message message{rank, cell.kind, cell.stage, cell.microbatch};
    const bool sends = cell.kind == Kind::send_forward || cell.kind == Kind::send_backward;
    const bool own = cell.stage < rank_of_.size() && cell.microbatch < microbatches_ &&
                     home(cell.stage, cell.microbatch) == rank;
    if (!own || !crosses(cell.stage, cell.microbatch, goes_up(cell.kind))) {
      findings_.add("nothing of it goes between these ranks", place(cell));
    } else if (!written_.insert(message).second) {
      findings_.add("is there twice", place(cell));
    } else if (sends && made_.count(message) == 0) {
      findings_.add("comes before what it sends is computed", place(cell));
    } else if (!sends && used_.count(message) > 0) {
      findings_.add("comes after the computation that needs it", place(cell));
    }
  }

  void left_out() {
    for (const auto& [rank, kind, stage, microbatch] : derived_) {
      if (written_.count({rank, kind, stage, microbatch}) == 0) {
        Cell cell{kind, stage, microbatch, 0, table_.row_where[rank]};
        findings_.add("is left out of the row", place(cell));
      }
    }
  }

  // Where the file gathers stages at all, each is gathered whenever it computes.
  void gathers(const std::vector<Cell>& row) {
    if (!has(Kind::unshard, Kind::reshard)) {
      return;
    }
    std::set<std::uint32_t> gathered;
    for (const Cell& cell : row) {
      if (cell.kind == Kind::unshard && !gathered.insert(cell.stage).second) {
        findings_.add("the stage is gathered already", place(cell));
      } else if (cell.kind == Kind::reshard && gathered.erase(cell.stage) == 0) {
        findings_.add("the stage is not gathered", place(cell));
      } else if (is_compute(cell.kind) && gathered.count(cell.stage) == 0) {
        findings_.add("computes a stage that is not gathered", place(cell));
      }
    }
  }

  void reductions(const std::vector<Cell>& row) {
    if (!has(Kind::reduce_grad, Kind::reduce_grad)) {
      return;
    }
    std::map<std::uint32_t, const Cell*> reduced, last;  // by stage
    for (const Cell& cell : row) {
      if (cell.kind == Kind::reduce_grad && !reduced.emplace(cell.stage, &cell).second) {
        findings_.add("reduces the stage's gradients a second time", place(cell));
      }
      if (cell.kind == Kind::backward || cell.kind == Kind::backward_weight) {
        last[cell.stage] = &cell;
        if (reduced.count(cell.stage) > 0) {
          findings_.add("comes after the REDUCE_GRAD of its stage", place(cell));
        }
      }
    }
    for (const auto& [stage, cell] : last) {
      if (reduced.count(stage) == 0) {
        findings_.add("is the last backward of its stage, and no REDUCE_GRAD follows",
                      place(*cell));
      }
    }
  }

  const Table& table_;
  const std::vector<std::uint32_t>& rank_of_;
  Mapping mapping_;
  std::uint32_t microbatches_;
  std::vector<Message> derived_;  // from the computations, in their order
  std::set<Message> used_, made_, written_;
  Findings findings_;
};

}  // namespace

std::vector<std::string> differences(const Table& table, const std::vector<std::uint32_t>& rank_of,
                                     Mapping mapping, std::uint32_t microbatches) {
  return Comparison(table, rank_of, mapping, microbatches).run();
}

}  // namespace schedule_file
