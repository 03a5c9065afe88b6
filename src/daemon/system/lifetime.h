/* The end of a worker that hangs in a driver. */
#ifndef SPANCL_DAEMON_LIFETIME_H
#define SPANCL_DAEMON_LIFETIME_H

/* End this process with WORKER_OVERDUE some seconds after the supervisor has died, whatever its threads do. A change
 * of user clears this; call it again. */
void lifetime_of_supervisor(void);

/* End it with WORKER_OVERDUE after this time. */
void lifetime_limit(unsigned seconds);

/* Return the status that a worker's main returns. On systems where lifetime_limit does not end a driver that hangs in
 * exit(), end the process here. */
int lifetime_end(int status);

/* End this process, one of whose threads does not return from a driver. Its connections but CONTROL_FD end, even if the
 * kernel can't end that thread. */
_Noreturn void lifetime_give_up(int status);

#endif
