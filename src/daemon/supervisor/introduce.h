/* The supervisor's part in dialling (daemon/dialler/dialler.h). It starts the dialler, restarts it after
 * its end, and gives each worker a socket with it. The supervisor reads nothing from the dialler. */
#ifndef SPANCL_DAEMON_INTRODUCE_H
#define SPANCL_DAEMON_INTRODUCE_H

#include "daemon/supervisor/supervising.h"

/* Start a dialler if there is none and it is time for one (helper_deadline). */
void dialler_provide(struct supervisor *s);

/* A process has ended with this status (waitpid(2)). Returns true if it was the dialler. */
bool dialler_ended(struct supervisor *s, pid_t pid, int status);

/* The same for media-io, the program that has the sources of --media-source and the sinks of --media-sink. */
bool streams_wanted(const struct supervisor *s);
void streams_provide(struct supervisor *s);
bool streams_ended(struct supervisor *s, pid_t pid, int status);

/* Give a worker sockets with the dialler and with media-io. A helper that does not run is left out; its start gives the
 * worker a socket later. */
void introduce(struct supervisor *s, struct worker *w);

#endif
