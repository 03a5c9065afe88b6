/* The states of a command, and the transitions between them (docs/internals/engine-completion.md).
 * They are a position in its life. Facts about a command are fields of struct command. */
#ifndef SPANCL_ENGINE_COMMAND_STATE_H
#define SPANCL_ENGINE_COMMAND_STATE_H

#include <stdbool.h>

enum command_state {
        COMMAND_NEW,        /* being described; a recorded command stays so */
        COMMAND_HELD,       /* in its queue's `held`: something that it waits for is missing */
        COMMAND_READY,      /* there, and in the engine's `ready`: engine_run tries it again */
        COMMAND_SUBMITTING, /* there: parts are submitted, others wait for bytes or room */
        COMMAND_IN_FLIGHT,  /* in its queue's `in_flight`: all parts are submitted */
        /* All parts are complete, but a command that it comes after is not. */
        COMMAND_COMPLETED_EARLY,
        /* Its event completes now, or with its batch, or when a failed read's last byte is sent. */
        COMMAND_DONE,
        COMMAND_STATES,
};

struct command;

/* Change the command's state. The transition must be a legal one. */
void engine_command_set_state(struct command *c, enum command_state to);

/* Is the transition legal? */
bool engine_command_state_leads(enum command_state from, enum command_state to);

#endif
