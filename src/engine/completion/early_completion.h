/* Commands that are complete before those that they come after. Native implementations tell of ends on several
 * threads, so that one may be heard of before those that it came after. It is told to nobody before they are: the
 * wait list (dependencies stay until the end), a barrier before it, or in order and for one behind all everything before
 * it in its queue. */
#ifndef SPANCL_ENGINE_EARLY_COMPLETION_H
#define SPANCL_ENGINE_EARLY_COMPLETION_H

#include "engine/command/command.h"

/* It is complete: finished now, or when what it came after is. */
void engine_early_completion_end(struct command *c);

/* Something that it came after is over: if it completed early, engine_early_completion_run sees to it. */
void engine_early_completion_check(struct command *c);

/* It ends, and leaves those of its queue that are in flight, and the fences: what came after it is looked at. */
void engine_early_completion_left(struct command *c);

/* Finish those that are not early any more. Each may be what another comes after. */
void engine_early_completion_run(struct engine *e);

#endif
