/* The progress thread: application callbacks, and completions that no thread waits for; nothing
 * else. All with the lock held, except client_step. */
#ifndef SPANCL_CORE_PROGRESS_H
#define SPANCL_CORE_PROGRESS_H

#include "core/client.h"

/* Run fn(d), an application callback, on the progress thread soon, without the lock. *d must not be
 * deferred already; it belongs to the client until fn runs. */
void client_defer(struct client *c, struct deferred *d, void (*fn)(struct deferred *d));

/* Give the progress thread something to do: start it at first, wake it when it sleeps. */
void progress_wake(struct client *c);
/* A device gets a watch callback, or loses it (client.progress.watchers). */
void progress_watch(struct client *c);
void progress_unwatch(struct client *c);
/* The last waiter has left: does the progress thread have to take over? */
void progress_relieve(struct client *c);
/* End the thread, unless it is in a callback. Lock held; released meanwhile. */
void progress_stop(struct client *c);
/* The child of a fork has no progress thread. */
void progress_forget(struct client *c);

/* For io without threads: run deferred callbacks and send what was left unsent. True: it did
 * something, or has something to do. No lock held. */
bool client_step(struct client *c);

#endif
