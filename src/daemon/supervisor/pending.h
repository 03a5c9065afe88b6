/* Connections that no worker has yet. The supervisor accepts them and reads their hellos. Then it
 * hands each one to a worker, answers its query, or refuses it. */
#ifndef SPANCL_DAEMON_PENDING_H
#define SPANCL_DAEMON_PENDING_H

#include "daemon/control.h"
#include "daemon/supervisor/supervising.h"

void pending_init(struct supervisor *s);

/* Start to accept again, or after a pause. SP_E_LIMIT. */
SP_NODISCARD int pending_resume(struct supervisor *s);
void pending_pause(struct supervisor *s);

/* Handle the events of a listener, or of a pending connection. */
void pending_accept(struct supervisor *s, const struct listening *l);
void pending_event(struct supervisor *s, struct pending *v);

/* A worker has become ready: serve the connections that wait for one. */
void pending_serve_waiting(struct supervisor *s);

/* Refuse the pending connections that wait for a worker with these rights; NULL: all. */
void pending_refuse_waiting(struct supervisor *s, const struct gate_grant *grant, int status,
                            const char *text);

/* Take no new sessions from now on: spancld ends with the last one. Tell the clients of running
 * sessions. */
void pending_drain(struct supervisor *s);

/* Send the connection to the worker: its hello, the fields of this kind of message (`between`), and its state, which
 * conn_export has written. SP_E_LINK: the worker is gone; SP_E_AGAIN: it does not keep up; SP_E_NOMEM. */
SP_NODISCARD int pending_send(const struct pending *v, struct worker *w, enum control_kind kind,
                              struct bytes between);

/* Send a worker's counters, or their end, to the connection that asked for them. */
void pending_pass_on(struct supervisor *s, struct worker *w, const struct control *c);

/* The exporter queries statistics. `fd`, a stream socket, gets the answer and is taken over. The
 * query with the number `before` must be over: one runs at a time. Returns the query's number; 0:
 * there was an error, and `fd` is closed. */
uint64_t pending_query(struct supervisor *s, int fd, uint64_t before);

/* The worker has ended: queries do not wait for its answer any more. */
void pending_worker_ended(struct supervisor *s, struct worker *w);

/* Drop the connections whose time is over. Returns the time of the next one; UINT64_MAX: none. */
void pending_expire(struct supervisor *s, uint64_t now_ns);
uint64_t pending_deadline(const struct supervisor *s);

/* Drop all connections that do not wait for a worker. */
void pending_drop_all(struct supervisor *s);

/* Free the dropped connections, after the events at hand, which may name them, are done. */
void pending_bury(struct supervisor *s);

#endif
