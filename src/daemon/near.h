/* How sessions reach other servers of the same host and user: over the Unix socket that each spancld makes in a
 * folder of its own (struct listeners, `near`). A worker may not open Unix sockets (daemon/sandbox.h), so the supervisor
 * connects for it, to nothing but such sockets. */
#ifndef SPANCL_DAEMON_NEAR_H
#define SPANCL_DAEMON_NEAR_H

#include "daemon/control.h"
#include "transport/transport.h"

#define NEAR_NAME "peers"

/* Supervisor: what a worker asks (CONTROL_NEAR) is answered. Does not block. */
void near_answer(int control, const struct control *asked);

/* Worker, any thread: a connection with who listens at `path`. Waits a second at most for the supervisor. SP_E_REFUSED,
 * SP_E_NOMEM. */
SP_NODISCARD int near_connect(void *user, const char *path, struct conn **ret);
/* Worker: the supervisor has answered; takes the descriptor. */
void near_answered(struct control *answer);

#endif
