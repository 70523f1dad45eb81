// The host's side of one plugin: what its calls read and write. The ABI's functions are in
// api_*.cc.
#pragma once

#include <piper/piper.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/directives/mesh_ranks.h"
#include "core/ir/model_graph.h"
#include "core/plugin/options.h"
#include "core/plugin/resolve.h"

namespace piper {

// Rows of the largest micro-batch: remainders go to the earlier ranks and micro-batches.
std::int64_t largest_microbatch(const Config& config);

// The captured model, the mesh and the options in the ABI's structs; points into itself and into
// what it was made from.
struct JobView {
  // `costs`: of each region, under the job's cost model.
  JobView(const Config& config, const ModelGraph& model, const std::vector<std::int64_t>& costs,
          const ResolvedStrategy& strategy, std::uint32_t generation);
  JobView(const JobView&) = delete;
  JobView& operator=(const JobView&) = delete;

  piper_where place(const Location& where);

  std::uint32_t generation;
  const ModelGraph& model;
  const ResolvedStrategy& strategy;
  MeshRanks mesh;
  std::size_t region_count = 0;
  std::vector<std::vector<Ranks>> families;  // by index of a piper_ranks
  std::vector<Location> places;              // by index of a piper_where

  piper_graph graph{};
  piper_job job{};
  std::vector<piper_str> tag_names;
  std::vector<piper_region_info> regions;
  std::vector<piper_parameter_info> parameters;
  std::vector<piper_value_info> values;
  std::vector<piper_axis> axes;
  // What the spans of the above point to.
  std::vector<std::vector<piper_tag_value>> region_tags;
  std::vector<std::vector<std::uint32_t>> indices;
  std::vector<std::vector<piper_affine>> shapes;
  struct OptionView {
    std::vector<piper_str> texts;
    std::vector<piper_where> wheres;
    piper_where where{};
  };
  std::vector<OptionView> options;                // as strategy.options
  std::vector<std::vector<std::uint32_t>> lists;  // given out by piper_ranks_api.list
  std::vector<std::vector<piper_unit>> units;     // given out by piper_graph_api.units
};

// Handles carry the number of the `plan` call that gave them out, so that one from an earlier call
// is recognised.
template <typename Handle>
Handle make_handle(std::size_t index, std::uint32_t generation) {
  return {std::uint64_t{generation} << 32U | static_cast<std::uint32_t>(index + 1)};
}
// `count` where it is none of the call's.
std::size_t handle_index(std::uint64_t bits, std::uint32_t generation, std::size_t count);

inline piper_str to_abi(std::string_view text) {
  return {text.data(), text.size()};
}
template <typename T>
piper_span to_span(const std::vector<T>& items) {
  return {items.data(), items.size(), sizeof(T)};
}

}  // namespace piper

// One a loaded plugin, for the life of the process: a call that comes too late finds it and is
// refused.
struct piper_ctx {
  enum class State : std::uint8_t { idle, scanning, planning };

  std::string plugin;  // its id
  std::atomic<State> state{State::idle};
  std::thread::id thread;
  std::atomic<bool> misused{false};  // called while idle, or on another thread
  std::atomic<bool> failed{false};   // the host could not serve a call, nor say why
  std::uint32_t generation = 0;      // of the last `plan` call

  piper::JobView* view = nullptr;  // while planning
  piper::Proposal proposal;
  piper::Diagnostics errors;
  piper::Diagnostics warnings;

  // Records an error, with the plugin's id before the message, and returns `result`.
  piper_code refuse(piper_code result, const char* code, const std::string& message,
                    piper::Location where = {});
  piper_code refuse(piper_code result, piper::Diagnostics diagnostics);
  piper_code null(const char* what) {
    return refuse(PIPER_INVALID, "abi.null", std::string(what) + " is NULL");
  }

  // The [[strategy]] table, where the handle is zero or unknown.
  piper::Location locate(piper_where where) const;
  // Copies a text; false, with an error recorded, where it is malformed.
  bool read(const char* what, piper_str text, std::string& out);
  // Whether the struct that `pointer` points to has at least its first version's size.
  template <typename T>
  bool read(const char* what, const T* pointer, std::size_t first_size) {
    return check_struct(what, pointer, pointer == nullptr ? 0 : pointer->struct_size, first_size);
  }
  // Whether a span can be walked, with elements of at least `element` bytes.
  bool check_span(const char* what, const piper_span& span, std::size_t element);
  // The same for elements that begin with struct_size; copies them in our size.
  template <typename T>
  bool read_all(const char* what, const piper_span& span, std::size_t first_size,
                std::vector<T>& out);
  // The same, one after the other, until `f` returns false.
  template <typename T, typename F>
  bool for_each(const char* what, const piper_span& span, std::size_t first_size, F&& f);

 private:
  bool check_struct(const char* what, const void* pointer, std::uint32_t size,
                    std::size_t first_size);
};

namespace piper {

// The frozen size of a struct's first version: up to and including `last`.
#define PIPER_FIRST_SIZE(type, last) (offsetof(type, last) + sizeof(type::last))

// Copies element i of a span of frozen structs.
template <typename T>
T element(const piper_span& span, std::uint64_t i) {
  T item;
  std::memcpy(&item, static_cast<const char*>(span.ptr) + i * span.stride, sizeof(T));
  return item;
}

// A copy in our size of a plugin's struct, `available` bytes of which may be read: what it is too
// short for is zero.
template <typename T>
T complete(const void* given, std::uint64_t available) {
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  T whole{};
  std::memcpy(&whole, given, std::min<std::uint64_t>({size, available, sizeof(T)}));
  return whole;
}
template <typename T>
T complete(const T* given) {
  return complete<T>(given, given->struct_size);
}

// Copies the host's struct into *out, as far as the plugin's version of it goes, and says in its
// struct_size how far that is.
template <typename T>
void fill(T* out, const T& whole) {
  const auto size = std::min<std::uint32_t>(out->struct_size, sizeof(T));
  std::memcpy(out, &whole, size);
  out->struct_size = size;
}

// Runs the body of an ABI function: only in the right state and on the right thread, and without an
// exception passing.
template <typename Body>
piper_code guarded(piper_ctx* ctx, piper_ctx::State needed, const char* function,
                   Body&& body) noexcept {
  if (ctx == nullptr) {
    return PIPER_INVALID;
  }
  const piper_ctx::State state = ctx->state;
  if (state == piper_ctx::State::idle || ctx->thread != std::this_thread::get_id()) {
    ctx->misused = true;
    return PIPER_WRONG_STATE;
  }
  try {
    if (needed == piper_ctx::State::planning && state != piper_ctx::State::planning) {
      return ctx->refuse(PIPER_WRONG_STATE, "plugin.wrong_state",
                         std::string(function) + " is called outside of plan");
    }
    return body(*ctx);
  } catch (...) {
    ctx->failed = true;
    return PIPER_INTERNAL;
  }
}

// Whether [plan] functions may be called; the usual case of the above.
template <typename Body>
piper_code planning(piper_ctx* ctx, const char* function, Body&& body) noexcept {
  return guarded(ctx, piper_ctx::State::planning, function, std::forward<Body>(body));
}

// The tables, each in its own source.
const piper_base& base_api();
const piper_host& host_api();
const piper_graph_api& graph_api();
const piper_ranks_api& ranks_api();
const piper_option_api& option_api();
const piper_directive_api& directive_api();

}  // namespace piper

template <typename T>
bool piper_ctx::read_all(const char* what, const piper_span& span, std::size_t first_size,
                         std::vector<T>& out) {
  return for_each<T>(what, span, first_size, [&](const T& item) {
    out.push_back(item);
    return true;
  });
}

template <typename T, typename F>
bool piper_ctx::for_each(const char* what, const piper_span& span, std::size_t first_size, F&& f) {
  if (!check_span(what, span, first_size)) {
    return false;
  }
  for (std::uint64_t i = 0; i < span.count; ++i) {
    const char* at = static_cast<const char*>(span.ptr) + i * span.stride;
    std::uint32_t size = 0;
    std::memcpy(&size, at, sizeof(size));
    if (!check_struct(what, at, size, first_size)) {
      return false;
    }
    if (!f(piper::complete<T>(at, span.stride))) {
      return false;
    }
  }
  return true;
}
