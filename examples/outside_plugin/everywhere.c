/* The smallest strategy, in C: everything is executed by all ranks, each on its own rows. */
#include <piper/piper.h>
#include <string.h>

static const piper_host* host;

static piper_code PIPER_CALL plan(void* self, piper_ctx* ctx) {
  piper_span no_coordinates = {NULL, 0, 0};
  piper_filter everything = {sizeof(everything), 0, {NULL, 0, 0}, {NULL, 0, 0}};
  piper_place place = {sizeof(place), 0, NULL, {0}, {NULL, 0}};
  piper_code code = host->ranks->at(ctx, &no_coordinates, &place.ranks);
  (void)self;
  place.filter = &everything;
  return code != PIPER_OK ? code : host->directives->place(ctx, &place);
}

PIPER_EXPORT const piper_plugin* PIPER_CALL PIPER_ENTRY(const piper_base* base, piper_ctx* ctx) {
  static piper_plugin plugin;
  host = (const piper_host*)base->get_api(ctx, PIPER_ABI_MAJOR, PIPER_MIN_HOST_MINOR);
  if (host == NULL) {
    return NULL; /* the host has said why */
  }
  memset(&plugin, 0, sizeof(plugin));
  plugin.struct_size = sizeof(plugin);
  plugin.abi_minor = host->abi_minor < PIPER_ABI_MINOR ? host->abi_minor : PIPER_ABI_MINOR;
  plugin.min_host_minor = PIPER_MIN_HOST_MINOR;
  plugin.built_with_minor = PIPER_ABI_MINOR;
  plugin.id.ptr = PIPER_PLUGIN_ID;
  plugin.id.len = sizeof(PIPER_PLUGIN_ID) - 1;
  plugin.version.ptr = PIPER_PLUGIN_VERSION;
  plugin.version.len = sizeof(PIPER_PLUGIN_VERSION) - 1;
  plugin.plan = plan;
  return &plugin;
}
