/* The list of files that a worker can reach, for its root folder and for Landlock. Owner: the
 * caller; one thread. */
#ifndef SPANCL_SANDBOX_PATHS_H
#define SPANCL_SANDBOX_PATHS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "config/options.h"

enum path_use {
        PATH_READ_ONLY,
        PATH_READ, /* read, execute */
        /* The same. The administrator has named it, so each session's user may read it. */
        PATH_NAMED,
        PATH_SELF,   /* /proc/self: read, execute, write to files */
        PATH_DEVICE, /* a device node, or a folder of them: all rights */
        /* Files in memory, all rights. A session with a root folder of its own has its own ones. */
        PATH_MEMORY,
        PATH_WRITE, /* all rights */
};

/* The folders that a worker may write to. */
struct sandbox_folders {
        const char *scratch;
        const char *programs; /* compiled ones; NULL: none */
        const char *uploads;  /* data of the client's; NULL: none */
};

struct path {
        char *name;
        enum path_use use;
};

struct paths { /* zeroed memory is an empty list */
        struct path *list;
        size_t count;
        bool all_own; /* /proc shows own processes only: /proc/self stands for all of them */
};

/* Find the paths that drivers and compilers need on this host, in this environment. The worker
 * may write to `folders`. Folders of caches are made.
 * SP_E_NOMEM. */
SP_NODISCARD int paths_find(struct paths *p, const struct config_options *o,
                            const struct sandbox_folders *folders);

/* Find the paths that CUDA's library needs to make device memory. SP_E_NOMEM. */
SP_NODISCARD int paths_find_cuda(struct paths *p);

/* Add these files and folders, as far as they exist; NULL behind the last. SP_E_NOMEM. */
SP_NODISCARD int paths_add(struct paths *p, const char *const *names, enum path_use use);

void paths_fini(struct paths *p);

/* Take the first absolute path off a list of paths separated by colons, as in environment
 * variables (NULL: an empty list). Relative paths are skipped. False: the list is empty. */
bool paths_take(const char **list, char ret[PATH_MAX]);

#endif
