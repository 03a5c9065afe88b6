/* The helpers that workers call: the dialler (daemon/dialler/dialler.h), media-io (av/io/main.c) and the allocator
 * (daemon/allocator/allocator.h). The supervisor starts them, restarts them after their end, and gives workers sockets
 * with them. It reads nothing from them. */
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

/* The same for the allocator, which only hosts with NVIDIA's driver have. */
bool allocator_wanted(void);
void allocator_provide(struct supervisor *s);
bool allocator_ended(struct supervisor *s, pid_t pid);

/* Give a worker sockets with the dialler and with media-io. A helper that does not run is left out; its start gives the
 * worker a socket later. */
void introduce(struct supervisor *s, struct worker *w);

/* Give a worker that has a session its socket with the allocator. A session whose device memory is limited gets none,
 * because the memory would be part of what the limits allow its program. Neither does a session that may use some
 * devices only, because the allocator makes memory on each of the host's. */
void introduce_session(struct supervisor *s, struct worker *w);

#endif
