/* Completion coalescing. In an out-of-order queue every command would need its own completion
 * callback. A command needs none if a later one in the same domain waits for it, or comes after all
 * before it: when that later one completes, so has this one. "Stands for" below means: the later
 * command reports the earlier one. */
#ifndef SPANCL_ENGINE_COALESCED_H
#define SPANCL_ENGINE_COALESCED_H

#include "engine/command/command.h"

/* May a later command report the completion of this one? */
bool engine_coalesced_allowed(const struct command *c) REQUIRES(engine_held);

/* The command is submitted. `unreported`: a later command may report it, or the backend when asked
 * later. It now stands for the commands that it comes after. */
void engine_coalesced_submitted(struct command *c, bool unreported);

/* Ask the backend to report the command itself. */
void engine_coalesced_report(struct command *c);
/* Everything is submitted for now: ask the backend to report each command that no other one stands
 * for. */
void engine_coalesced_report_all(struct engine *e) REQUIRES(engine_held);

/* The command `c` is complete. Append to `all` the commands that it stands for
 * (command.unreported), and those that these stand for, the newest first. */
void engine_coalesced_take(struct command *c, struct list *all);

/* The command `c` has failed, so its completion proves nothing: each command that it stands for has
 * to be reported. */
void engine_coalesced_uncertain(struct command *c);

#endif
