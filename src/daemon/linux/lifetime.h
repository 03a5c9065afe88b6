/* The end of a worker that hangs in a driver. */
#ifndef SPANCL_DAEMON_LIFETIME_H
#define SPANCL_DAEMON_LIFETIME_H

/* End this process with WORKER_OVERDUE some seconds after the supervisor has died, whatever its threads do. A change
 * of user clears this; call it again. */
void lifetime_of_supervisor(void);

/* End it with WORKER_OVERDUE after this time. */
void lifetime_limit(unsigned seconds);

#endif
