// The C++17 side of the ABI, compiled into the plugin: a strategy is a function of a Job, named by
// PIPER_STRATEGY.
//
//   void plan(piper::sdk::Job &job) {
//     const auto pp = job.axis("pp");
//     job.claim_axis("pp");
//     ...
//   }
//   PIPER_STRATEGY(plan)
//
// Every member of Job that fails throws piper::sdk::Failed, after the host has recorded why;
// nothing needs to be checked, nor caught: the entry catches everything, and turns other exceptions
// into a diagnostic. Views and texts that Job gives out are the host's, and valid until `plan`
// returns.
#ifndef PIPER_STRATEGY_HPP
#define PIPER_STRATEGY_HPP

#include <piper/piper.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace piper::sdk {

struct Failed : std::exception {
  const char *what() const noexcept override { return "a call of the host failed"; }
};

inline piper_str to_abi(std::string_view text) {
  return {text.data(), text.size()};
}
inline std::string_view view(piper_str text) {
  return {text.ptr, static_cast<std::size_t>(text.len)};
}

// The host's arrays: their elements may be larger than this header knows.
template <typename T>
class Span {
 public:
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T *;
    using reference = const T &;
    iterator() = default;
    iterator(const char *at, std::size_t stride) : at_(at), stride_(stride) {}
    reference operator*() const { return *reinterpret_cast<const T *>(at_); }
    pointer operator->() const { return &**this; }
    iterator &operator++() {
      at_ += stride_;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const iterator &other) const { return at_ == other.at_; }
    bool operator!=(const iterator &other) const { return at_ != other.at_; }

   private:
    const char *at_ = nullptr;
    std::size_t stride_ = 0;
  };

  Span() = default;
  explicit Span(piper_span span) : span_(span) {}
  std::size_t size() const { return static_cast<std::size_t>(span_.count); }
  bool empty() const { return size() == 0; }
  const T &operator[](std::size_t i) const { return *iterator(base() + i * stride(), stride()); }
  iterator begin() const { return {base(), stride()}; }
  iterator end() const { return {base() + size() * stride(), stride()}; }

 private:
  const char *base() const { return static_cast<const char *>(span_.ptr); }
  std::size_t stride() const { return static_cast<std::size_t>(span_.stride); }
  piper_span span_{};
};

// Selects chunks: Filter().equals("PP", 1).absent("EP").pass(PIPER_FORWARD). Without conditions:
// everything.
class Filter {
 public:
  Filter &equals(std::string tag, std::uint32_t index) {
    return add(std::move(tag), PIPER_EQUALS, 1, index);
  }
  Filter &in(std::string tag, std::vector<std::uint32_t> set) {
    add(std::move(tag), PIPER_IN_SET, 0);
    conditions_.back().set = std::move(set);
    return *this;
  }
  Filter &range(std::string tag, std::uint32_t first, std::uint32_t last) {
    return add(std::move(tag), PIPER_IN_RANGE, 2, first, last);
  }
  Filter &present(std::string tag) { return add(std::move(tag), PIPER_PRESENT, 0); }
  Filter &absent(std::string tag) { return add(std::move(tag), PIPER_IS_ABSENT, 0); }
  Filter &pass(piper_pass pass) {
    passes_ |= PIPER_PASS_BIT(pass);
    return *this;
  }
  Filter &region(piper_region region) {
    regions_.push_back(region);
    return *this;
  }

  // The ABI's form of a filter; points into it.
  struct Abi {
    std::vector<piper_condition> conditions;
    piper_filter filter{};
  };
  void fill(Abi &abi) const {
    abi.conditions.reserve(conditions_.size());
    abi.filter = append_to(abi.conditions);
  }
  // The same with conditions at the end of a list that has room for them.
  piper_filter append_to(std::vector<piper_condition> &list) const {
    const piper_condition *first = list.data() + list.size();
    for (const Condition &condition : conditions_) {
      list.push_back(
          {sizeof(piper_condition), condition.kind, to_abi(condition.tag), condition.span()});
    }
    return {sizeof(piper_filter),
            passes_,
            {first, conditions_.size(), sizeof(piper_condition)},
            span(regions_)};
  }
  std::size_t condition_count() const { return conditions_.size(); }

  template <typename T>
  static piper_span span(const std::vector<T> &items) {
    return {items.data(), items.size(), sizeof(T)};
  }

 private:
  struct Condition {
    std::string tag;
    piper_condition_kind kind;
    std::uint32_t count;  // of `few`
    std::uint32_t few[2];
    std::vector<std::uint32_t> set;

    piper_span span() const {
      return kind == PIPER_IN_SET ? Filter::span(set)
                                  : piper_span{few, count, sizeof(std::uint32_t)};
    }
  };
  Filter &add(std::string tag, piper_condition_kind kind, std::uint32_t count,
              std::uint32_t first = 0, std::uint32_t second = 0) {
    conditions_.reserve(conditions_.empty() ? 2 : 0);
    conditions_.push_back({std::move(tag), kind, count, {first, second}, {}});
    return *this;
  }

  std::vector<Condition> conditions_;
  std::vector<piper_region> regions_;
  std::uint32_t passes_ = 0;
};

struct Axis {
  std::string_view name;
  std::uint32_t size = 1;
  piper_where where{};
};

struct Coordinate {
  std::string_view axis;
  std::uint64_t index;
};

// How Job::tag cuts regions into parts; see piper/directive.h.
struct Partition {
  piper_partition_by by = PIPER_BY_COST;
  std::uint32_t parts = 1;
  std::string_view over = "layer";
  std::vector<std::uint32_t> boundaries = {};
};

// An option's value and where the job file has it.
template <typename T>
struct Option {
  T value{};
  piper_where where{};
};

class Job {
 public:
  Job(const piper_base *base, const piper_host *host, piper_ctx *ctx)
      : base_(base), host_(host), ctx_(ctx) {
    graph_.struct_size = sizeof(graph_);
    check(host_->graph->graph(ctx_, &graph_));
    job_.struct_size = sizeof(job_);
    check(host_->graph->job(ctx_, &job_));
  }

  // The job.
  std::uint32_t world() const { return job_.world; }
  std::uint32_t microbatches() const { return job_.microbatches; }
  piper_where microbatches_where() const { return job_.microbatches_where; }
  std::int64_t rows() const { return job_.rows; }  // of the largest micro-batch
  std::int64_t global_rows() const { return job_.global_rows; }
  Span<piper_axis> axes() const { return Span<piper_axis>(job_.axes); }
  // Size 1 where the mesh does not have it.
  Axis axis(std::string_view name) const {
    for (const piper_axis &axis : axes()) {
      if (view(axis.name) == name) {
        return {view(axis.name), axis.size, axis.where};
      }
    }
    return {name, 1, {}};
  }

  // The captured model.
  Span<piper_region_info> regions() const { return Span<piper_region_info>(graph_.regions); }
  Span<piper_parameter_info> parameters() const {
    return Span<piper_parameter_info>(graph_.parameters);
  }
  Span<piper_value_info> values() const { return Span<piper_value_info>(graph_.values); }
  Span<piper_str> tag_names() const { return Span<piper_str>(graph_.tag_names); }
  // The index of tag `name` on a region.
  std::optional<std::uint32_t> tag_of(const piper_region_info &region,
                                      std::string_view name) const {
    const Span<piper_str> names = tag_names();
    for (const piper_tag_value &tag : Span<piper_tag_value>(region.tags)) {
      if (view(names[tag.name]) == name) {
        return tag.index;
      }
    }
    return std::nullopt;
  }

  // What a partition over tag `over` cuts between.
  Span<piper_unit> units(std::string_view over) const {
    piper_span units{};
    check(host_->graph->units(ctx_, to_abi(over), &units));
    return Span<piper_unit>(units);
  }

  // Options. A single one without value or default fails with `<plugin>.option`; ask `has` first.
  // Lists are then empty.
  bool has(std::string_view name) const { return state(name) != PIPER_OPTION_ABSENT; }
  bool written(std::string_view name) const { return state(name) == PIPER_OPTION_WRITTEN; }
  Option<bool> get_bool(std::string_view name) const {
    const auto got = get<std::int32_t>(host_->options->get_bool, name);
    return {got.value != 0, got.where};
  }
  Option<std::int64_t> get_i64(std::string_view name) const {
    return get<std::int64_t>(host_->options->get_i64, name);
  }
  Option<double> get_f64(std::string_view name) const {
    return get<double>(host_->options->get_f64, name);
  }
  Option<std::string_view> get_str(std::string_view name) const {
    const auto got = get<piper_str>(host_->options->get_str, name);
    return {view(got.value), got.where};
  }
  std::vector<Option<std::int64_t>> get_i64_list(std::string_view name) const {
    return get_list<std::int64_t>(host_->options->get_i64_list, name,
                                  [](std::int64_t item) { return item; });
  }
  std::vector<Option<double>> get_f64_list(std::string_view name) const {
    return get_list<double>(host_->options->get_f64_list, name, [](double item) { return item; });
  }
  std::vector<Option<std::string_view>> get_str_list(std::string_view name) const {
    return get_list<std::string_view>(host_->options->get_str_list, name,
                                      [](piper_str item) { return view(item); });
  }

  // Diagnostics; `rule` becomes the code "<plugin>.<rule>".
  [[noreturn]] void fail(std::string_view rule, const std::string &message,
                         piper_where where = {}) const {
    report(PIPER_SEVERITY_ERROR, rule, message, where);
    throw Failed();
  }
  void warn(std::string_view rule, const std::string &message, piper_where where = {}) const {
    report(PIPER_SEVERITY_WARNING, rule, message, where);
  }

  // Ranks.
  piper_ranks at(std::initializer_list<Coordinate> coordinates) const {
    std::vector<piper_coordinate> list;
    for (const Coordinate &coordinate : coordinates) {
      list.push_back({to_abi(coordinate.axis), coordinate.index});
    }
    return ranks(host_->ranks->at, Filter::span(list));
  }
  piper_ranks along(std::initializer_list<std::string_view> axes) const {
    std::vector<piper_str> list;
    for (const std::string_view axis : axes) {
      list.push_back(to_abi(axis));
    }
    return ranks(host_->ranks->along, Filter::span(list));
  }
  piper_ranks of(const std::vector<std::uint32_t> &ranks, std::uint32_t group_size) const {
    const piper_span span = Filter::span(ranks);
    piper_ranks out{};
    check(host_->ranks->of(ctx_, &span, group_size, &out));
    return out;
  }
  piper_ranks group(piper_ranks family, std::uint32_t index) const {
    piper_ranks out{};
    check(host_->ranks->group(ctx_, family, index, &out));
    return out;
  }

  // Claims and directives; see piper/directive.h.
  void claim_axis(std::string_view axis) { claim(PIPER_CLAIM_AXIS, axis); }
  void claim_split() { claim(PIPER_CLAIM_SPLIT, {}); }
  void claim_order() { claim(PIPER_CLAIM_ORDER, {}); }

  void tag(const Filter &filter, std::string_view name, std::uint32_t index) {
    with(filter, [&](const piper_filter *f) {
      const piper_tag tag{sizeof(piper_tag), index, to_abi(name), f, nullptr};
      return host_->directives->tag(ctx_, &tag);
    });
  }
  void tag(const Filter &filter, std::string_view name, const Partition &how) {
    with(filter, [&](const piper_filter *f) {
      const piper_partition partition{
          sizeof(piper_partition),     how.by, how.parts, 0, to_abi(how.over),
          Filter::span(how.boundaries)};
      const piper_tag tag{sizeof(piper_tag), 0, to_abi(name), f, &partition};
      return host_->directives->tag(ctx_, &tag);
    });
  }
  void split(const Filter &filter, std::string_view dim, std::uint32_t n) {
    with(filter, [&](const piper_filter *f) {
      const piper_split split{sizeof(piper_split), n, to_abi(dim), f};
      return host_->directives->split(ctx_, &split);
    });
  }
  void split_backward(const Filter &filter) {
    with(filter, [&](const piper_filter *f) {
      const piper_split_backward split{sizeof(piper_split_backward), 0, f};
      return host_->directives->split_backward(ctx_, &split);
    });
  }
  void place(const Filter &filter, piper_ranks ranks, std::string_view stream = {}) {
    with(filter, [&](const piper_filter *f) {
      const piper_place place{sizeof(piper_place), 0, f, ranks, to_abi(stream)};
      return host_->directives->place(ctx_, &place);
    });
  }
  // struct_size and filter of `options` are set here.
  void replicate(const Filter &filter, piper_ranks ranks, piper_replicate options = {}) {
    with(filter, [&](const piper_filter *f) {
      options.struct_size = sizeof(options);
      options.filter = f;
      options.ranks = ranks;
      return host_->directives->replicate(ctx_, &options);
    });
  }
  void shard(const Filter &filter, piper_ranks ranks, std::string_view stream = {}) {
    with(filter, [&](const piper_filter *f) {
      const piper_shard shard{sizeof(piper_shard), PIPER_SHARD_EXPERTS, f, ranks, to_abi(stream)};
      return host_->directives->shard(ctx_, &shard);
    });
  }
  void recompute(const Filter &filter) {
    with(filter, [&](const piper_filter *f) {
      const piper_recompute recompute{sizeof(piper_recompute), 0, f};
      return host_->directives->recompute(ctx_, &recompute);
    });
  }
  void order(const std::vector<std::vector<Filter>> &groups) {
    std::size_t filter_count = 0, condition_count = 0;
    for (const std::vector<Filter> &group : groups) {
      filter_count += group.size();
      for (const Filter &filter : group) {
        condition_count += filter.condition_count();
      }
    }
    std::vector<piper_condition> conditions;
    std::vector<piper_filter> filters;
    std::vector<piper_order_group> abi;
    conditions.reserve(condition_count);
    filters.reserve(filter_count);
    abi.reserve(groups.size());
    for (const std::vector<Filter> &group : groups) {
      const piper_filter *first = filters.data() + filters.size();
      for (const Filter &filter : group) {
        filters.push_back(filter.append_to(conditions));
      }
      abi.push_back({sizeof(piper_order_group), 0, {first, group.size(), sizeof(piper_filter)}});
    }
    const piper_order order{sizeof(piper_order), 0, Filter::span(abi)};
    check(host_->directives->order(ctx_, &order));
  }
  void order_chain(piper_ranks ranks, const std::vector<piper_action> &actions) {
    check(host_->directives->order_chain(ctx_, ranks, actions.data(), actions.size(),
                                         sizeof(piper_action)));
  }

  // For what this class leaves out.
  const piper_host *host() const { return host_; }
  piper_ctx *ctx() const { return ctx_; }
  void check(piper_code code) const {
    if (code != PIPER_OK) {
      throw Failed();
    }
  }

 private:
  piper_option_state state(std::string_view name) const {
    piper_option_state state = PIPER_OPTION_ABSENT;
    check(host_->options->state(ctx_, to_abi(name), &state));
    return state;
  }
  template <typename T, typename Getter>
  Option<T> get(Getter getter, std::string_view name) const {
    Option<T> option;
    const piper_code code = getter(ctx_, to_abi(name), &option.value, &option.where);
    if (code == PIPER_ABSENT) {
      fail("option", "option '" + std::string(name) + "' has no value");
    }
    check(code);
    return option;
  }
  template <typename T, typename Getter, typename Convert>
  std::vector<Option<T>> get_list(Getter getter, std::string_view name, Convert convert) const {
    using Item = std::conditional_t<std::is_same_v<T, std::string_view>, piper_str, T>;
    std::vector<Option<T>> list;
    piper_span items{};
    piper_span wheres{};
    const piper_code code = getter(ctx_, to_abi(name), &items, &wheres);
    if (code == PIPER_ABSENT) {
      return list;
    }
    check(code);
    const Span<Item> values(items);
    const Span<piper_where> places(wheres);
    for (std::size_t i = 0; i < values.size(); ++i) {
      list.push_back({convert(values[i]), places[i]});
    }
    return list;
  }
  template <typename Maker>
  piper_ranks ranks(Maker maker, const piper_span &list) const {
    piper_ranks out{};
    check(maker(ctx_, &list, &out));
    return out;
  }
  void claim(piper_claim_kind kind, std::string_view name) {
    const piper_claim claim{sizeof(piper_claim), kind, to_abi(name)};
    check(host_->directives->claim(ctx_, &claim));
  }
  template <typename Call>
  void with(const Filter &filter, Call &&call) {
    Filter::Abi abi;
    filter.fill(abi);
    check(call(&abi.filter));
  }
  void report(piper_severity severity, std::string_view rule, const std::string &message,
              piper_where where) const {
    const std::string code = PIPER_PLUGIN_ID "." + std::string(rule);
    const piper_diag diag{sizeof(piper_diag), severity, to_abi(code), to_abi(message), where, {}};
    check(base_->report(ctx_, &diag));
  }

  const piper_base *base_;
  const piper_host *host_;
  piper_ctx *ctx_;
  piper_graph graph_{};
  piper_job job_{};
};

// The plugin's table and its functions, for PIPER_STRATEGY.
template <void (*plan_function)(Job &)>
struct Entry {
  struct State {
    piper_plugin table;
    const piper_base *base;
    const piper_host *host;
  };

  static void report_exception(const piper_base *base, piper_ctx *ctx,
                               std::string_view what) noexcept {
    const piper_str message = to_abi(what);
    const piper_diag diag{sizeof(piper_diag),
                          PIPER_SEVERITY_PLUGIN_MISBEHAVING,
                          to_abi("plugin.exception"),
                          message,
                          {},
                          {}};
    base->report(ctx, &diag);
  }

  static piper_code PIPER_CALL plan(void *self, piper_ctx *ctx) noexcept {
    const State &state = *static_cast<const State *>(self);
    try {
      Job job(state.base, state.host, ctx);
      plan_function(job);
      return PIPER_OK;
    } catch (const Failed &) {
      return PIPER_ERROR;  // reported already
    } catch (const std::exception &thrown) {
      report_exception(state.base, ctx, thrown.what());
    } catch (...) {
      report_exception(state.base, ctx, "an exception of an unknown type");
    }
    return PIPER_ERROR;
  }

  static const piper_plugin *enter(const piper_base *base, piper_ctx *ctx, std::string_view id,
                                   std::string_view version,
                                   std::uint32_t min_host_minor) noexcept {
    static State state;
    const auto *host =
        static_cast<const piper_host *>(base->get_api(ctx, PIPER_ABI_MAJOR, min_host_minor));
    if (host == nullptr) {
      return nullptr;
    }
    const std::uint32_t minor =
        host->abi_minor < PIPER_ABI_MINOR ? host->abi_minor : PIPER_ABI_MINOR;
    state.base = base;
    state.host = host;
    state.table = {sizeof(piper_plugin), minor,        min_host_minor, PIPER_ABI_MINOR, to_abi(id),
                   to_abi(version),      &Entry::plan, nullptr,        nullptr,         &state};
    return &state.table;
  }
};

}  // namespace piper::sdk

// Defines the plugin's entry: `plan_function` is a void(piper::sdk::Job &). Once in a plugin,
// outside of namespaces. piper_add_strategy defines PIPER_PLUGIN_ID, PIPER_PLUGIN_VERSION and
// PIPER_MIN_HOST_MINOR from the manifest.
#define PIPER_STRATEGY(plan_function)                                                             \
  PIPER_EXPORT const piper_plugin *PIPER_CALL PIPER_ENTRY(const piper_base *base,                 \
                                                          piper_ctx *ctx) {                       \
    return ::piper::sdk::Entry<plan_function>::enter(base, ctx, PIPER_PLUGIN_ID,                  \
                                                     PIPER_PLUGIN_VERSION, PIPER_MIN_HOST_MINOR); \
  }

#endif
