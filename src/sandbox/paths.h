/* The files that a worker can reach: one list, for its own root folder and for Landlock. Owner: the caller; one thread. */
#ifndef SPANCL_SANDBOX_PATHS_H
#define SPANCL_SANDBOX_PATHS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"

enum path_use {
        PATH_READ, /* read, execute */
        PATH_NAMED, /* the same; the administrator has named it, so sessions may read it whatever user they have */
        PATH_SELF,   /* /proc/self: write to files as well */
        PATH_DEVICE, /* a node, or a folder of nodes: everything */
        PATH_WRITE,  /* everything */
};

struct path {
        char *name;
        enum path_use use;
};

struct paths { /* zeroed memory is an empty list */
        struct path *list;
        size_t count;
};

/* Find the paths that drivers and compilers need on this host, in this environment. The worker may write to `scratch_dir` and `cache_dir`
 * (NULL: none). Folders of caches are made. SP_E_NOMEM. */
SP_NODISCARD int paths_find(struct paths *p, const struct config_options *o,
                            const char *scratch_dir, const char *cache_dir);

void paths_fini(struct paths *p);

/* Take the first path off a list of paths separated by colons (NULL: an empty one), as environments have them. Those that are
 * not absolute are left out. False: there is no more. */
bool paths_take(const char **list, char ret[PATH_MAX]);

#endif
