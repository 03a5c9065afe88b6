/* The caches of compiled programs, for SpanCL and for drivers, and of data that clients have sent.
 * This host's sessions share one folder; each client of another host has its own (docs/SECURITY.md). No state. */
#ifndef SPANCL_DAEMON_CACHES_H
#define SPANCL_DAEMON_CACHES_H

#include <limits.h>
#include <stdbool.h>

#include "config/options.h"

/* The folders of one owner that the engine uses; "": it has no such folder. */
struct caches {
        char programs[PATH_MAX];
        char uploads
                [PATH_MAX]; /* chunks of the client's writes; only a client with a key has one */
};

/* Make the folders of `owner` (gate.h; "": this host's sessions), and set environment variables so
 * that drivers use them. If they can't be made, compiled programs last as long as `scratch_dir`. */
void caches_use(const struct config_options *o, const char *owner, const char *scratch_dir,
                struct caches *ret);

/* Remove the least recently used files in the folders of `owner` (NULL: of all owners) until the
 * rest is within --cache-size, or the client's own limit (client_cache_bytes), and --upload-cache.
 * `clients` is the list of clients; NULL: there is none. Files that were written in the last `grace_s` seconds stay. */
void caches_trim(const struct config_options *o, const char *clients, const char *owner,
                 unsigned grace_s);

/* Return true if a folder of `owner` with compiled programs takes more than `limit_bytes`, or that of its uploads as
 * much more than --upload-cache. */
bool caches_are_over(const struct config_options *o, const char *owner, uint64_t limit_bytes);

#endif
