/* The commands of a session that an observer sees (docs/TRACING.md, --attach): the newest ones with their names, sizes
 * and the devices' own times, in bounded memory. Kept only while there are observers. Guarded by the engine's lock. */
#ifndef SPANCL_ENGINE_OBSERVED_H
#define SPANCL_ENGINE_OBSERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/lock.h"

struct backend_times;
struct command;
struct engine;
struct observed_command;

struct engine_observed {
        unsigned observers;
        struct observed_command *ring; /* NULL: there is no observer */
        uint64_t ever;                 /* commands put into the ring */
        uint64_t untimed;              /* commands that ran, at times that are not known */
};

/* Return true while there are observers. Then every command's completion is reported, and queues that are created
 * record times, although the client did not ask for them. */
bool engine_has_observers(const struct engine *e) REQUIRES(engine_held);

/* A part of a command is submitted. */
void engine_observed_submit(struct command *c) REQUIRES(engine_held);

/* A command completes. `times`: of its device; NULL: they are not known. Then this server's are taken: from the
 * submission, or in an in-order queue the completion of the one before, until now. `run`: it is a whole command
 * buffer, from its first command's submission on. A command that was never submitted is left out. */
void engine_observed_complete(const struct command *c, const struct backend_times *times, bool run)
        REQUIRES(engine_held);

void engine_observed_fini(struct engine *e) REQUIRES(engine_held);

#endif
