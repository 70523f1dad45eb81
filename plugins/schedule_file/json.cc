#include "json.h"

#include <algorithm>
#include <charconv>

namespace schedule_file {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json parse() {
    if (text_.substr(0, 3) == "\xef\xbb\xbf") {
      text_.remove_prefix(3);
    }
    Json json = value(0);
    skip_blanks();
    if (!text_.empty()) {
      throw Malformed(where_, "expected the end of the file");
    }
    return json;
  }

 private:
  static constexpr int kDeepest = 32;

  void advance(std::size_t count) {
    for (const char c : text_.substr(0, count)) {
      where_ = c == '\n' ? Position{where_.line + 1, 1} : Position{where_.line, where_.column + 1};
    }
    text_.remove_prefix(count);
  }

  void skip_blanks() { advance(std::min(text_.find_first_not_of(" \t\r\n"), text_.size())); }

  bool take(char wanted) {
    skip_blanks();
    const bool is = !text_.empty() && text_.front() == wanted;
    if (is) {
      advance(1);
    }
    return is;
  }

  bool take_word(std::string_view word) {
    const bool is = text_.substr(0, word.size()) == word;
    if (is) {
      advance(word.size());
    }
    return is;
  }

  void expect(char wanted) {
    if (!take(wanted)) {
      throw Malformed(where_, std::string("expected '") + wanted + "'");
    }
  }

  Json value(int depth) {
    skip_blanks();
    Json json;
    json.where = where_;
    if (depth > kDeepest) {
      throw Malformed(where_, "expected at most " + std::to_string(kDeepest) + " nested values");
    }
    if (text_.empty()) {
      throw Malformed(where_, "expected a value, got the end of the file");
    }
    const char first = text_.front();
    if (first == '{') {
      object(json, depth);
    } else if (first == '[') {
      list(json, depth);
    } else if (first == '"') {
      json.type = Json::Type::text;
      json.text = text();
    } else if (take_word("true") || take_word("false")) {
      json.type = Json::Type::boolean;
      json.boolean = first == 't';
    } else if (!take_word("null")) {
      number(json);
    }
    return json;
  }

  void object(Json& json, int depth) {
    json.type = Json::Type::object;
    expect('{');
    while (!take('}')) {
      if (!json.members.empty()) {
        expect(',');
      }
      skip_blanks();
      if (text_.empty() || text_.front() != '"') {
        throw Malformed(where_, "expected a name in quotes");
      }
      std::string name = text();
      expect(':');
      json.members.emplace_back(std::move(name), value(depth + 1));
    }
  }

  void list(Json& json, int depth) {
    json.type = Json::Type::list;
    expect('[');
    while (!take(']')) {
      if (!json.items.empty()) {
        expect(',');
      }
      json.items.push_back(value(depth + 1));
    }
  }

  // Escapes stay as they are, but for those of quotes and backslashes: no name or action has any.
  std::string text() {
    const Position begin = where_;
    advance(1);
    std::string result;
    while (!text_.empty() && text_.front() != '"' && text_.front() != '\n') {
      if (text_.front() == '\\' && text_.size() > 1) {
        advance(1);
      }
      result += text_.front();
      advance(1);
    }
    if (text_.empty() || text_.front() != '"') {
      throw Malformed(begin, "expected a text that ends with a quote on its line");
    }
    advance(1);
    return result;
  }

  void number(Json& json) {
    json.type = Json::Type::number;
    const auto [end, code] =
        std::from_chars(text_.data(), text_.data() + text_.size(), json.number);
    if (code != std::errc()) {
      throw Malformed(where_, "expected a value");
    }
    advance(static_cast<std::size_t>(end - text_.data()));
  }

  std::string_view text_;
  Position where_;
};

const Json& member(const Json& object, std::string_view name, Json::Type type,
                   std::string_view type_name) {
  const Json* found = object.find(name);
  if (found == nullptr || found->type != type) {
    throw Malformed(found == nullptr ? object.where : found->where,
                    "expected \"" + std::string(name) + "\", " + std::string(type_name));
  }
  return *found;
}

double number_of(const Json& table, std::string_view name) {
  return member(table, name, Json::Type::number, "a number").number;
}

bool fits(const Json& table, const Wanted& wanted) {
  return number_of(table, "ranks") == wanted.ranks &&
         number_of(table, "microbatches") == wanted.microbatches;
}

std::string whole(double number) {
  constexpr double most = 1e15;
  return number > -most && number < most ? std::to_string(static_cast<std::int64_t>(number))
                                         : "a huge number";
}

std::string sizes_of(const Json& table) {
  const auto text = [&](std::string_view name) { return whole(number_of(table, name)); };
  std::string sizes = text("ranks") + " ranks and " + text("microbatches") + " micro-batches";
  for (const auto& [name, value] : table.members) {
    const bool told = name == "ranks" || name == "microbatches";
    if (value.type == Json::Type::number && !told) {
      sizes += ", " + name + " " + whole(value.number);
    }
  }
  return sizes;
}

const Json& choose(const Json& file, const std::vector<Json>& tables, const Wanted& wanted) {
  if (wanted.number > tables.size()) {
    throw Malformed(file.where, "expected a file with at least " + std::to_string(wanted.number) +
                                    " tables, got " + std::to_string(tables.size()));
  }
  if (wanted.number > 0) {
    const Json& table = tables[wanted.number - 1];
    if (!fits(table, wanted)) {
      throw Malformed(table.where, "expected a table of " + std::to_string(wanted.ranks) +
                                       " ranks and " + std::to_string(wanted.microbatches) +
                                       " micro-batches, got one of " + sizes_of(table));
    }
    return table;
  }
  std::string found;
  const Json* only = nullptr;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (fits(tables[i], wanted)) {
      found +=
          (only == nullptr ? "" : "; ") + std::to_string(i + 1) + " (" + sizes_of(tables[i]) + ")";
      only = only == nullptr ? &tables[i] : &file;
    }
  }
  if (only == nullptr || only == &file) {
    throw Malformed(file.where, "expected one table of " + std::to_string(wanted.ranks) +
                                    " ranks and " + std::to_string(wanted.microbatches) +
                                    " micro-batches, got " +
                                    (found.empty() ? "none"
                                                   : "tables " + found +
                                                         ": say which with option "
                                                         "'table'"));
  }
  return *only;
}

}  // namespace

const Json* Json::find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

Json parse_json(std::string_view text) {
  return Parser(text).parse();
}

Table read_json(std::string_view text, const Wanted& wanted) {
  const Json file = parse_json(text);
  const Json* list = file.find("tables");
  const std::vector<Json> alone{file};
  if (list != nullptr && list->type != Json::Type::list) {
    throw Malformed(list->where, "expected \"tables\", a list");
  }
  const std::vector<Json>& tables = list != nullptr ? list->items : alone;
  const Json& chosen = choose(file, tables, wanted);
  Table table;
  if (const Json* mapping = chosen.find("mapping"); mapping != nullptr) {
    table.mapping = mapping->text;
    if (table.mapping != "loop" && table.mapping != "v" && table.mapping != "bidirectional") {
      throw Malformed(mapping->where, R"(expected "loop", "v" or "bidirectional")");
    }
  }
  for (const Json& row : member(chosen, "per_rank", Json::Type::list, "a list of rows").items) {
    if (row.type != Json::Type::list) {
      throw Malformed(row.where, "expected a row, a list of actions");
    }
    table.rows.emplace_back();
    table.row_where.push_back(row.where);
    for (const Json& cell : row.items) {
      if (cell.type != Json::Type::text) {
        throw Malformed(cell.where, "expected an action in quotes");
      }
      read_cell(cell.text, {cell.where.line, cell.where.column + 1}, table.rows.back());
    }
    table.end = row.where;
  }
  return table;
}

}  // namespace schedule_file
