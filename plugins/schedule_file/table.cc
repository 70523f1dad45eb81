#include "table.h"

#include <array>
#include <utility>

namespace schedule_file {
namespace {

constexpr std::array<std::pair<std::string_view, Kind>, 11> kNames{
    {{"F", Kind::forward},
     {"B", Kind::backward},
     {"I", Kind::backward_input},
     {"W", Kind::backward_weight},
     {"SEND_F", Kind::send_forward},
     {"RECV_F", Kind::recv_forward},
     {"SEND_B", Kind::send_backward},
     {"RECV_B", Kind::recv_backward},
     {"UNSHARD", Kind::unshard},
     {"RESHARD", Kind::reshard},
     {"REDUCE_GRAD", Kind::reduce_grad}}};
constexpr std::size_t kMostDigits = 6;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The text without blanks around it; `where` moves with its begin.
std::string_view trim(std::string_view text, Position& where) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
    ++where.column;
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

// Takes a number off the front of `text`: false where there is none.
bool take_number(std::string_view& text, std::uint32_t& number) {
  std::size_t digits = 0;
  number = 0;
  for (; digits < text.size() && is_digit(text[digits]); ++digits) {
    if (digits == kMostDigits) {
      return false;
    }
    number = number * 10 + static_cast<std::uint32_t>(text[digits] - '0');
  }
  text.remove_prefix(digits);
  return digits > 0;
}

Malformed not_an_action(std::string_view text, Position where) {
  constexpr std::size_t most = 40;
  const std::string shown(text.substr(0, most));
  return Malformed(where,
                   "expected an action such as 0F3, 0B3, 0I3, 0W3, 1SEND_F2, 2UNSHARD or "
                   "(0F3;3B1)OVERLAP_F_B, got '" +
                       shown + (text.size() > most ? "..." : "") + "'");
}

Cell read_one(std::string_view text, Position where) {
  const std::string_view whole = text = trim(text, where);
  Cell cell;
  cell.where = where;
  if (!take_number(text, cell.stage)) {
    throw not_an_action(whole, where);
  }
  std::size_t letters = 0;
  while (letters < text.size() && !is_digit(text[letters])) {
    ++letters;
  }
  const std::string_view name = text.substr(0, letters);
  text.remove_prefix(letters);
  for (const auto& [known, kind] : kNames) {
    if (known == name) {
      cell.kind = kind;
      const bool of_a_stage =
          kind == Kind::unshard || kind == Kind::reshard || kind == Kind::reduce_grad;
      const bool numbered = take_number(text, cell.microbatch);
      if ((numbered || of_a_stage) && text.empty()) {
        return cell;
      }
    }
  }
  throw not_an_action(whole, where);
}

}  // namespace

std::string to_string(const Cell& cell) {
  const bool of_a_stage = cell.kind >= Kind::unshard;
  return std::to_string(cell.stage) +
         std::string(kNames[static_cast<std::size_t>(cell.kind)].first) +
         (of_a_stage ? "" : std::to_string(cell.microbatch));
}

void read_cell(std::string_view text, Position where, std::vector<Cell>& row) {
  constexpr std::string_view kTail = ")OVERLAP_F_B";
  text = trim(text, where);
  if (text.empty()) {
    return;
  }
  if (text.front() != '(') {
    row.push_back(read_one(text, where));
    return;
  }
  const std::size_t middle = text.find(';'), tail = text.find(')');
  if (middle == std::string_view::npos || tail == std::string_view::npos || middle > tail ||
      text.substr(tail) != kTail) {
    throw not_an_action(text, where);
  }
  const Position second{where.line, where.column + middle + 1};
  Cell forward = read_one(text.substr(1, middle - 1), {where.line, where.column + 1});
  Cell backward = read_one(text.substr(middle + 1, tail - middle - 1), second);
  if (forward.kind != Kind::forward || backward.kind != Kind::backward) {
    throw Malformed(where, "expected a forward and a whole backward in an overlapped pair, got '" +
                               std::string(text.substr(0, tail)) + ")'");
  }
  const std::uint32_t number = static_cast<std::uint32_t>(row.size()) + 1;  // differs from others
  forward.overlap = backward.overlap = number;
  row.push_back(forward);
  row.push_back(backward);
}

Table read_csv(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\n')) {
    text.remove_suffix(1);  // lines at the end that are empty
  }
  Table table;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    table.rows.emplace_back();
    table.row_where.push_back({line, 1});
    for (std::size_t at = 0; at <= row.size();) {
      const std::size_t comma = std::min(row.find(',', at), row.size());
      Position where{line, at + 1};
      std::string_view cell = trim(row.substr(at, comma - at), where);
      if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
        cell = cell.substr(1, cell.size() - 2);
        ++where.column;
      }
      read_cell(cell, where, table.rows.back());
      at = comma + 1;
    }
    table.end = {line, row.size() + 1};
  }
  return table;
}

}  // namespace schedule_file
