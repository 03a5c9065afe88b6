/* Connections that no worker has yet: accepted, heard, and handed to a worker, told what they ask for, or refused. */
#ifndef SPANCL_DAEMON_PENDING_H
#define SPANCL_DAEMON_PENDING_H

#include "daemon/control.h"
#include "daemon/supervising.h"

/* Listen, or not for a while. SP_E_LIMIT. */
SP_NODISCARD int pending_resume(struct supervisor *s);
void pending_pause(struct supervisor *s);

/* There are events at a listener, or a pending connection. */
void pending_accept(struct supervisor *s, const struct listening *l);
void pending_event(struct supervisor *s, struct pending *v);

/* A worker has become ready: those who waited go on. */
void pending_serve_waiting(struct supervisor *s);

/* Refuse the pending connections that wait for a worker like this; NULL: all. */
void pending_refuse_waiting(struct supervisor *s, const struct gate_grant *grant, int status,
                            const char *text);

/* A worker's counters, or their end, for whoever looks. */
void pending_pass_on(struct supervisor *s, struct worker *w, const struct control *c);

/* Those whose time is over leave; when the next one's is, UINT64_MAX: nobody's. */
void pending_expire(struct supervisor *s, uint64_t now_ns);
uint64_t pending_deadline(const struct supervisor *s);

/* All leave that do not wait for a worker. */
void pending_drop_all(struct supervisor *s);

/* Free those that have left: the events at hand, which may name them, are done. */
void pending_bury(struct supervisor *s);

#endif
