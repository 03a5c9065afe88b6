/* Early completions: a command is reported complete before one that it comes after. Native
 * implementations report completions on several threads, so the order of reports is not that of the
 * commands. The engine holds back the early one until all that it comes after is complete. That is
 * its wait list (dependencies stay until the end) and, in an out-of-order queue, a barrier before
 * it. In an in-order queue, or for a command that comes after all, it is everything before it in
 * its queue. */
#ifndef SPANCL_ENGINE_EARLY_COMPLETION_H
#define SPANCL_ENGINE_EARLY_COMPLETION_H

#include "engine/command/command.h"

/* All parts of the command are complete. Return true if it completed early: it is withheld now. */
bool engine_early_completion_withhold(struct command *c);

/* One that it comes after is complete. If the command completed early, it is checked again by
 * engine_early_completion_next. */
void engine_early_completion_check(struct command *c);

/* The command leaves its queue's commands in flight, and the fences. Check the commands that come
 * after it. */
void engine_early_completion_left(struct command *c) REQUIRES(engine_held);

/* Take the next withheld command that is early no longer. NULL: there is none. */
struct command *engine_early_completion_next(struct engine *e) REQUIRES(engine_held);

#endif
