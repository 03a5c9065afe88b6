/* Caches of compiled programs, SpanCL's and drivers': one folder for the sessions of this host, one for those of each
 * client of another host (docs/SECURITY.md). No state. */
#ifndef SPANCL_DAEMON_CACHES_H
#define SPANCL_DAEMON_CACHES_H

#include <limits.h>
#include <stdbool.h>

#include "base/config.h"

/* Make the folder of `owner` (gate.h; "": this host's sessions) and tell drivers, in the environment, to use it. If it can't be
 * made, what they compile lasts as long as `scratch_dir`. The folder of the engine's cache; "": it has none. */
void caches_use(const struct config_options *o, const char *owner, const char *scratch_dir,
                char ret[PATH_MAX]);

/* Remove what was used least recently of the folder of `owner` (NULL: of all owners) until --cache-size is kept. Files
 * that were written in the last `grace_s` seconds stay. */
void caches_trim(const struct config_options *o, const char *owner, unsigned grace_s);

/* Do the folders of `owner` take more than --cache-size and `more_bytes`? */
bool caches_are_over(const struct config_options *o, const char *owner, uint64_t more_bytes);

#endif
