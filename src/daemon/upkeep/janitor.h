/* The removal of ended sessions' files: scratch folders, and the part of caches beyond
 * --cache-size. A child process of low priority removes them, one at a time, so the supervisor
 * never waits for a disk. Owner: the supervisor. */
#ifndef SPANCL_DAEMON_JANITOR_H
#define SPANCL_DAEMON_JANITOR_H

#include "base/list.h"
#include "daemon/supervisor/gate.h"

struct janitor {
        const struct config_options *options;
        pid_t pid; /* 0: nothing runs */
        struct list waiting, running;
};

/* Start. The first jobs are scratch folders without an owner, and the caches of all clients. */
void janitor_init(struct janitor *j, const struct config_options *o);

/* Remove this scratch folder ("": none), then close its lock (-1: none), and trim the caches of
 * `owner`. `shared`: other sessions use these caches, so their newest files stay. */
void janitor_add(struct janitor *j, const char *scratch, int lock, const char *owner, bool shared);

/* A child process has ended. Returns true if it was the janitor's. */
bool janitor_ended(struct janitor *j, pid_t pid);

/* Run the remaining jobs, and wait for them, for some seconds at most. Jobs that take longer keep their memory, and
 * still read the options. */
void janitor_fini(struct janitor *j);

#endif
