#include "core/lower/arena_packings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace piper {
namespace {

using Index = std::uint32_t;
using Ending = std::pair<std::uint64_t, Index>;  // when, which block or place
using Endings = std::priority_queue<Ending, std::vector<Ending>, std::greater<>>;

bool live_together(const ArenaBlock& a, const ArenaBlock& b) {
  return a.begin < b.end && b.begin < a.end;
}

}  // namespace

void Packing::place(std::size_t block, std::int64_t offset, std::int64_t bytes) {
  offsets[block] = offset;
  size = std::max(size, offset + bytes);
}

Live most_live(std::span<const ArenaBlock> blocks) {
  Endings endings;
  Live now, most;
  for (Index b = 0; b < blocks.size(); ++b) {
    for (; !endings.empty() && endings.top().first <= blocks[b].begin; endings.pop()) {
      now.bytes -= blocks[endings.top().second].bytes;
    }
    endings.push({blocks[b].end, b});
    now.bytes += blocks[b].bytes;
    most.bytes = std::max(most.bytes, now.bytes);
    most.blocks = std::max(most.blocks, static_cast<std::int64_t>(endings.size()));
  }
  return most;
}

Packing rotate(std::span<const ArenaBlock> blocks) {
  struct Places {
    Endings busy;  // until when, the place
    Index count = 0;
    std::int64_t first = 0;  // offset of place 0
  };
  std::map<std::int64_t, Places, std::greater<>> of_size;
  std::vector<Index> place(blocks.size());
  for (Index b = 0; b < blocks.size(); ++b) {
    Places& places = of_size[blocks[b].bytes];
    if (places.busy.empty() || places.busy.top().first > blocks[b].begin) {
      place[b] = places.count++;
    } else {
      place[b] = places.busy.top().second;
      places.busy.pop();
    }
    places.busy.push({blocks[b].end, place[b]});
  }
  std::int64_t next = 0;
  for (auto& [bytes, places] : of_size) {
    places.first = next;
    next += places.count * bytes;
  }
  Packing packing(blocks.size());
  for (Index b = 0; b < blocks.size(); ++b) {
    const std::int64_t bytes = blocks[b].bytes;
    packing.place(b, of_size[bytes].first + place[b] * bytes, bytes);
  }
  return packing;
}

Packing fit_first(std::span<const ArenaBlock> blocks, std::span<const std::uint32_t> order) {
  Packing packing(blocks.size());
  std::vector<Index> placed;  // by offset
  for (const Index b : order) {
    std::int64_t low = 0;
    for (const Index other : placed) {
      if (!live_together(blocks[other], blocks[b])) {
        continue;
      }
      if (packing.offsets[other] >= low + blocks[b].bytes) {
        break;
      }
      low = std::max(low, packing.offsets[other] + blocks[other].bytes);
    }
    packing.place(b, low, blocks[b].bytes);
    const auto above = [&](std::int64_t offset, Index other) {
      return offset < packing.offsets[other];
    };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), low, above), b);
  }
  return packing;
}

namespace {

class Search {
 public:
  Search(std::span<const ArenaBlock> blocks, std::int64_t size, std::size_t width)
      : blocks_(blocks), size_(size), width_(width) {}

  std::optional<Packing> run() {
    std::vector<State> states(1), next;
    for (Index b = 0; b < blocks_.size(); ++b) {
      next.clear();
      for (Index s = 0; s < states.size(); ++s) {
        std::erase_if(states[s].live, [&](const Placed& other) {
          return blocks_[other.block].end <= blocks_[b].begin;
        });
        add_block(b, s, states[s], next);
      }
      if (next.empty()) {
        return std::nullopt;
      }
      keep_best(next, states);
      std::vector<Choice>& choices = choices_.emplace_back();
      for (const State& state : states) {
        choices.push_back(state.choice);
      }
    }
    return go_back();
  }

 private:
  struct Placed {
    std::int64_t offset = 0;
    Index block = 0;
    bool operator==(const Placed&) const = default;
  };
  struct Choice {
    std::int64_t offset = 0;  // of the last block
    Index before = 0;         // which of the states that the block before left
  };
  struct State {
    std::vector<Placed> live;  // by offset
    double free = 0;           // sum of the squares of the holes
    Choice choice;
  };

  // At both ends of each hole that is large enough.
  void add_block(Index b, Index before, const State& state, std::vector<State>& next) const {
    const std::int64_t bytes = blocks_[b].bytes;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i <= state.live.size(); ++i) {
      const bool is_last = i == state.live.size();
      const std::int64_t end = is_last ? size_ : state.live[i].offset;
      if (end - begin >= bytes) {
        add_state(b, before, state, i, begin, next);
      }
      if (end - begin > bytes) {
        add_state(b, before, state, i, end - bytes, next);
      }
      if (!is_last) {
        begin = end + blocks_[state.live[i].block].bytes;
      }
    }
  }

  void add_state(Index b, Index before, const State& state, std::size_t at, std::int64_t offset,
                 std::vector<State>& next) const {
    State& added = next.emplace_back(State{state.live, 0, {offset, before}});
    added.live.insert(added.live.begin() + static_cast<std::ptrdiff_t>(at), {offset, b});
    std::int64_t begin = 0;
    const auto count = [&](std::int64_t end) {
      const auto hole = static_cast<double>(end - begin);
      added.free += hole * hole;
    };
    for (const Placed& placed : added.live) {
      count(placed.offset);
      begin = placed.offset + blocks_[placed.block].bytes;
    }
    count(size_);
  }

  void keep_best(std::vector<State>& from, std::vector<State>& to) const {
    std::stable_sort(from.begin(), from.end(),
                     [](const State& a, const State& b) { return a.free > b.free; });
    to.clear();
    for (State& state : from) {
      const auto same = [&](const State& other) {
        return other.free == state.free && other.live == state.live;
      };
      if (to.size() < width_ && std::none_of(to.begin(), to.end(), same)) {
        to.push_back(std::move(state));
      }
    }
  }

  Packing go_back() const {
    Packing packing(blocks_.size());
    Index state = 0;
    for (std::size_t b = blocks_.size(); b-- > 0;) {
      const Choice& choice = choices_[b][state];
      packing.place(b, choice.offset, blocks_[b].bytes);
      state = choice.before;
    }
    return packing;
  }

  std::span<const ArenaBlock> blocks_;
  std::int64_t size_;
  std::size_t width_;
  std::vector<std::vector<Choice>> choices_;  // by block and state
};

}  // namespace

std::optional<Packing> search(std::span<const ArenaBlock> blocks, std::int64_t size,
                              std::size_t width) {
  return Search(blocks, size, width).run();
}

}  // namespace piper
