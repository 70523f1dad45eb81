// piper_graph_api: the job and the captured model.
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

}  // namespace

const piper_graph_api& graph_api() {
  static constexpr piper_graph_api table{sizeof(piper_graph_api), 0, graph, job};
  return table;
}

}  // namespace piper
