/* Observers of the worker's session (docs/TRACING.md, `spancl trace --attach`): connections that the supervisor has
 * admitted. Each has a thread, which has the session recorded, and sends the records when the observer asks for them,
 * or when the session ends. An observer may send few kinds of messages (HELLO_ROLE_OBSERVE), and gets one answer. The
 * thread drops an observer that is silent, and ends a recording after 24 hours.
 *
 * One state per process. Only the main thread calls these functions. */
#ifndef SPANCL_DAEMON_OBSERVING_H
#define SPANCL_DAEMON_OBSERVING_H

#include "loop/server_loop.h"

/* Take an observer's connection over, whose hello was read. `number` is the supervisor's for its key. The
 * connection is refused if there are too many. */
void observing_begin(struct server_loop *l, struct conn *conn, uint64_t number);

/* Drop the observers that have the number, without their records: the client's key was removed. */
void observing_drop(uint64_t number);

/* The session has ended. Each observer's thread takes the records that there are, and no longer uses the server loop
 * when this returns. */
void observing_end(void);

/* After observing_end: wait until each observer has its records or is late, which takes six seconds at most. */
void observing_wait(void);

#endif
