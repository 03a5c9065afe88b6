/* Discovery: the sources that this user has named, and the servers that they find.
 *
 * One thread of its own reads the sources. It calls `changed` without any lock; nothing else calls
 * it. The record lists are the thread's; `changed` copies what it keeps. */
#ifndef SPANCL_DISCOVERY_DISCOVERY_H
#define SPANCL_DISCOVERY_DISCOVERY_H

#include "discovery/discovered.h"
#include "discovery/trust.h"

enum {
        DISCOVERY_SOURCES_MAX = 16,
        DISCOVERY_AGAIN_MS = 1000,
};

struct discovery;

/* A server, as one source reports it. */
struct discovery_item {
        const struct discovered *record;
        const char *source; /* as the user named it */
        enum discovered_use use;
};

/* Receives all servers that are found now, in the order of the sources. `settled`: all sources have reported what
 * they find at first, or have ended. Return true to be called again in about a second even if
 * nothing changes. Changes within 0.1 s are one call. */
typedef bool (*discovery_fn)(void *user, const struct discovery_item *items, size_t count,
                             bool settled);

/* Return true if the source "auto" suits this user: the user has a key of a server, and the source is installed. Any
 * thread. */
bool discovery_suits(void);

/* Begin. `sources` are names as in SPANCL_DISCOVERY; "auto" is the source mdns, without its messages.
 * A source that can't be started is logged, and counts as settled. SP_E_INVAL with *ret_error, which
 * the caller frees with mem_free: a name that no source has; SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int discovery_new(const char *sources, discovery_fn changed, void *user,
                               struct discovery **ret, char **ret_error);

/* End the thread; the sources' programs end by themselves. The caller holds no lock that `changed`
 * takes. NULL is allowed. */
struct discovery *discovery_free(struct discovery *d);

/* Have `changed` called within 0.1 s. Any thread. NULL is allowed. */
void discovery_poke(struct discovery *d);

/* Close the descriptors in the child of a fork, which has no such thread. Nothing is freed. */
void discovery_abandon(struct discovery *d);

#endif
