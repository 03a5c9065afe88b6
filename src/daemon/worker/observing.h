/* Observers of the worker's session (docs/TRACING.md, `spancl trace --attach`): connections that the supervisor has
 * admitted. Each has a thread, which has the session recorded, and sends the records when it is asked, or when the
 * session ends. An observer says little (HELLO_ROLE_OBSERVE), gets one answer, and is dropped when it is silent.
 *
 * One state per process. Only the main thread calls these functions. */
#ifndef SPANCL_DAEMON_OBSERVING_H
#define SPANCL_DAEMON_OBSERVING_H

#include "loop/server_loop.h"

/* Take an observer's connection over, whose hello was read. It is refused if there are too many. */
void observing_begin(struct server_loop *l, struct conn *conn);

/* The session has ended: send each observer what there is, and wait for them for a few seconds. */
void observing_end(void);

#endif
