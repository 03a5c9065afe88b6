/* The caches of compiled programs, for SpanCL and for drivers. This host's sessions share one
 * folder; each client of another host has its own (docs/SECURITY.md). No state. */
#ifndef SPANCL_DAEMON_CACHES_H
#define SPANCL_DAEMON_CACHES_H

#include <limits.h>
#include <stdbool.h>

#include "config/options.h"

/* Make the folder of `owner` (gate.h; "": this host's sessions), and set environment variables so
 * that drivers use it. If it can't be made, compiled programs last as long as `scratch_dir`.
 * `ret` is the folder of the engine's cache; "": there is none. */
void caches_use(const struct config_options *o, const char *owner, const char *scratch_dir,
                char ret[PATH_MAX]);

/* Remove the least recently used files in the folder of `owner` (NULL: of all owners) until the
 * rest is within --cache-size, or the client's own limit (client_cache_bytes). `clients` is the list of clients;
 * NULL: there is none. Files that were written in the last `grace_s` seconds stay. */
void caches_trim(const struct config_options *o, const char *clients, const char *owner,
                 unsigned grace_s);

/* Return true if a folder of `owner` takes more than `limit_bytes`. */
bool caches_are_over(const struct config_options *o, const char *owner, uint64_t limit_bytes);

#endif
