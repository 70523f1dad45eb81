/* The version of the ABI, and the macros that every other header uses.
 *
 * MAJOR: a change that breaks; it is part of the name of the entry symbol. While it is 0 the ABI is
 * a draft, and host and plugin must have been built from the same minor. MINOR: fields and
 * functions appended, values added. A host serves every plugin whose lowest minor it reaches. */
#ifndef PIPER_VERSION_H
#define PIPER_VERSION_H

#include <stddef.h>
#include <stdint.h>

#define PIPER_ABI_MAJOR 0u
#define PIPER_ABI_MINOR 3u

/* The one symbol that a plugin exports; piper/plugin.h has its type. */
#define PIPER_ENTRY piper_plugin_entry_v0
#define PIPER_ENTRY_NAME "piper_plugin_entry_v0"

/* Calling convention of every function that crosses the boundary: the platform's C convention. */
#define PIPER_CALL

#if defined(__cplusplus)
#define PIPER_EXTERN_C extern "C"
#else
#define PIPER_EXTERN_C extern
#endif
#define PIPER_EXPORT PIPER_EXTERN_C __attribute__((visibility("default")))

/* Whether *p, of which the other side made p->struct_size bytes, has `field`. Ask before reading
 * any field that a later minor than the struct's first added. */
#define PIPER_HAS(type, p, field) ((p)->struct_size >= offsetof(type, field) + sizeof((p)->field))

#endif
