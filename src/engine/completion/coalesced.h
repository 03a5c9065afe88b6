/* Commands whose ends others tell. In a queue without order each end has to be noticed by itself, but for those that
 * others in the same domain wait for, or that stand behind all: they are over when these are. */
#ifndef SPANCL_ENGINE_COALESCED_H
#define SPANCL_ENGINE_COALESCED_H

#include "engine/command/command.h"

/* May its end be told by others, if there come some? */
bool engine_coalesced_allowed(const struct command *c);

/* It is submitted, `unreported`: to be reported by others, or later. It stands for those that it comes after. */
void engine_coalesced_submitted(struct command *c, bool unreported);

/* Have it reported by itself. */
void engine_coalesced_report(struct command *c);
/* Everything is submitted for now: so are those that no other one stands for. */
void engine_coalesced_report_all(struct engine *e);

/* `c` is complete: those that it stands for are appended to `all` (command.unreported), and those that these stand for,
 * the newest first. */
void engine_coalesced_take(struct command *c, struct list *all);

/* `c` has failed, and nothing is certain: each that it stands for is to be reported. */
void engine_coalesced_uncertain(struct command *c);

#endif
