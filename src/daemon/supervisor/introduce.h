/* The supervisor's part in dialling (daemon/dialler/dialler.h). It starts the dialler, restarts it after
 * its end, and gives each worker a socket with it. The supervisor reads nothing from the dialler. */
#ifndef SPANCL_DAEMON_INTRODUCE_H
#define SPANCL_DAEMON_INTRODUCE_H

#include "daemon/supervisor/supervising.h"

/* Start a dialler if there is none and it is time for one (helper_deadline). */
void dialler_provide(struct supervisor *s);

/* A process has ended with this status (waitpid(2)). Returns true if it was the dialler. */
bool dialler_ended(struct supervisor *s, pid_t pid, int status);

/* Give a worker a socket with the dialler. Without a dialler nothing happens; dialler_provide
 * does it later. */
void introduce(struct supervisor *s, struct worker *w);

#endif
