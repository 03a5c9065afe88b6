/* Commands that are complete before those that they come after. Native implementations tell of ends on several
 * threads, so that one may be heard of before those that it came after. It is told to nobody before they are: the
 * wait list (dependencies stay until the end), a barrier before it, or in order and for one behind all everything before
 * it in its queue. */
#ifndef SPANCL_ENGINE_AHEAD_H
#define SPANCL_ENGINE_AHEAD_H

#include "engine/command.h"

/* It is complete: finished now, or when what it came after is. */
void engine_ahead_end(struct command *c);

/* Something that it came after is over: if it is ahead, engine_ahead_run sees to it. */
void engine_ahead_look(struct command *c);

/* It ends, and leaves those of its queue that are in flight, and the fences: what came after it is looked at. */
void engine_ahead_left(struct command *c);

/* Finish those that are not ahead any more. Each may be what another comes after. */
void engine_ahead_run(struct engine *e);

#endif
