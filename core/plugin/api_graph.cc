// piper_graph_api: the job and the captured model.
#include "core/directives/partition.h"
#include "core/plugin/context.h"

namespace piper {
namespace {

template <typename T>
piper_code give(piper_ctx* ctx, const char* name, T* out, std::size_t first_size,
                T JobView::*whole) {
  return planning(ctx, name, [&](piper_ctx& c) -> piper_code {
    if (!c.read(name, out, first_size)) {
      return PIPER_INVALID;
    }
    fill(out, c.view->*whole);
    return PIPER_OK;
  });
}

piper_code PIPER_CALL graph(piper_ctx* ctx, piper_graph* out) {
  return give(ctx, "graph", out, PIPER_FIRST_SIZE(piper_graph, regions), &JobView::graph);
}

piper_code PIPER_CALL job(piper_ctx* ctx, piper_job* out) {
  return give(ctx, "job", out, PIPER_FIRST_SIZE(piper_job, microbatches_where), &JobView::job);
}

piper_code PIPER_CALL units(piper_ctx* ctx, piper_str over, piper_span* out) {
  return planning(ctx, "units", [&](piper_ctx& c) -> piper_code {
    std::string tag;
    if (out == nullptr) {
      return c.null("units");
    }
    if (!c.read("units: over", over, tag)) {
      return PIPER_INVALID;
    }
    std::vector<piper_unit>& given = c.view->units.emplace_back();
    for (const Unit& unit : units_of(c.view->model, all_regions(c.view->model), tag)) {
      given.push_back(
          {make_handle<piper_region>(index(unit.regions.front()), c.generation), unit.index, 0});
    }
    *out = to_span(given);
    return PIPER_OK;
  });
}

}  // namespace

const piper_graph_api& graph_api() {
  static constexpr piper_graph_api table{sizeof(piper_graph_api), 0, graph, job, units};
  return table;
}

}  // namespace piper
