/* The entry of a plugin, and the tables that the two sides give each other. */
#ifndef PIPER_PLUGIN_H
#define PIPER_PLUGIN_H

#include <piper/directive.h>
#include <piper/graph.h>
#include <piper/options.h>
#include <piper/ranks.h>

/* The host's table. No pointer in it, nor in its tables, is NULL: what a host does not do yet
 * answers PIPER_UNSUPPORTED. Owned by the host, valid as long as the process. */
typedef struct piper_host {
  uint32_t struct_size;
  uint32_t abi_minor; /* the host's own */
  piper_str version;  /* of the program, for messages */
  const piper_graph_api *graph;
  const piper_ranks_api *ranks;
  const piper_option_api *options;
  const piper_directive_api *directives;
  /* A table that is no part of the ABI's version, by "<organisation>.<name>/<revision>"; NULL: not
   * known. [plan] */
  const void *(PIPER_CALL *get_extension)(piper_ctx *ctx, piper_str id);
} piper_host;

/* The plugin's table. Owned by the plugin; it stays valid and unchanged as long as the process. */
typedef struct piper_plugin {
  uint32_t struct_size;
  uint32_t abi_minor;      /* negotiated: the lower of built_with_minor and the host's abi_minor */
  uint32_t min_host_minor; /* the lowest host this plugin works with */
  uint32_t built_with_minor; /* PIPER_ABI_MINOR of its headers */
  piper_str id;              /* as in the manifest */
  piper_str version;         /* as in the manifest */
  /* Proposes the strategy for one job: reads the job and calls piper_directive_api. Pure: the same
   * job gives the same calls in the same order, on every rank and in every process. Touches no
   * device, starts no thread, keeps nothing of the host's. Never called concurrently; may be called
   * several times. A failure without a recorded diagnostic is itself reported as the plugin's
   * fault. Must not be NULL. [plan] */
  piper_code(PIPER_CALL *plan)(void *self, piper_ctx *ctx);
  /* No further call comes. Called once, before main returns. May be NULL. [scan] */
  void(PIPER_CALL *shutdown)(void *self);
  /* The plugin's side of piper_host.get_extension. May be NULL. [scan], [plan] */
  const void *(PIPER_CALL *get_extension)(void *self, piper_str id);
  void *self; /* passed back */
} piper_plugin;

/* The type of PIPER_ENTRY. Called once in a process, after the manifest was checked. Returns NULL
 * on failure, with a diagnostic recorded. Both arguments are the host's and stay valid as long as
 * the process. [scan] */
typedef const piper_plugin *(PIPER_CALL *piper_entry_fn)(const piper_base *base, piper_ctx *ctx);

PIPER_EXPORT const piper_plugin *PIPER_CALL PIPER_ENTRY(const piper_base *base, piper_ctx *ctx);

#endif
