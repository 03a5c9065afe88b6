/* The progress thread: application callbacks, and completions that no thread waits for; nothing
 * else. */
#ifndef SPANCL_CORE_PROGRESS_H
#define SPANCL_CORE_PROGRESS_H

#include "core/client.h"

/* Run fn(d), an application callback, on the progress thread soon, without the lock. *d must not be
 * deferred already; it belongs to the client until fn runs. */
void client_defer(struct client *c, struct deferred *d, void (*fn)(struct deferred *d))
        REQUIRES(client_held);

/* Give the progress thread something to do: start it at first, wake it when it sleeps. */
void progress_wake(struct client *c) REQUIRES(client_held);
/* A device gets a watch callback, or loses it (client.progress.watchers). */
void progress_watch(struct client *c) REQUIRES(client_held);
void progress_unwatch(struct client *c) REQUIRES(client_held);
/* The last waiter has left: does the progress thread have to take over? */
void progress_relieve(struct client *c) REQUIRES(client_held);
/* End the thread, unless it is in a callback. Releases the lock meanwhile. */
void progress_stop(struct client *c) REQUIRES(client_held);
/* The child of a fork has no progress thread. */
void progress_forget(struct client *c) REQUIRES(client_held);

/* For io without threads: run deferred callbacks and send what was left unsent. True: it did
 * something, or has something to do. */
bool client_step(struct client *c) EXCLUDES(client_held);

#endif
