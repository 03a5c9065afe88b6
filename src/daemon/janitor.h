/* Takes ended sessions' files away: scratch folders, and of caches what is beyond --cache-size. A child process of low
 * priority does it, one at a time, so the supervisor never waits for a disk. Owner: the supervisor. */
#ifndef SPANCL_DAEMON_JANITOR_H
#define SPANCL_DAEMON_JANITOR_H

#include "base/list.h"
#include "daemon/gate.h"

struct janitor {
        const struct config_options *options;
        pid_t pid; /* 0: nothing runs */
        struct list waiting, running;
};

/* Begin with scratch folders that nobody holds, and the caches of all clients. */
void janitor_init(struct janitor *j, const struct config_options *o);

/* Remove this scratch folder ("": none), then close its lock (-1: none), and trim the caches of `owner`. `shared`: other sessions
 * use them, so their newest files stay. */
void janitor_add(struct janitor *j, const char *scratch, int lock, const char *owner, bool shared);

/* A child process has ended. True: it was the janitor's. */
bool janitor_ended(struct janitor *j, pid_t pid);

/* Do what is left, and wait for it, but not for longer than some seconds. */
void janitor_fini(struct janitor *j);

#endif
