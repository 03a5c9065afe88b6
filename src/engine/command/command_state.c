#include "engine/command/command_state.h"

#include <assert.h>

#include "engine/command/command.h"

#ifdef NDEBUG
#error "a wrong transition must end the process: build without NDEBUG"
#endif

#define BIT(state) (1u << (state))

/* The states that may follow each state. */
static const unsigned next_states[COMMAND_STATES] = {
        /* A marker of the engine's own is in no queue's `held`. */
        [COMMAND_NEW] = BIT(COMMAND_HELD) | BIT(COMMAND_IN_FLIGHT),
        [COMMAND_HELD] = BIT(COMMAND_READY) | BIT(COMMAND_SUBMITTING),
        [COMMAND_READY] = BIT(COMMAND_HELD) | BIT(COMMAND_SUBMITTING),
        [COMMAND_SUBMITTING] = BIT(COMMAND_IN_FLIGHT),
        [COMMAND_IN_FLIGHT] = BIT(COMMAND_COMPLETED_EARLY) | BIT(COMMAND_DONE),
        [COMMAND_COMPLETED_EARLY] = BIT(COMMAND_DONE),
};

bool engine_command_state_leads(enum command_state from, enum command_state to)
{
        return next_states[from] & BIT(to);
}

void engine_command_set_state(struct command *c, enum command_state to)
{
        assert(engine_command_state_leads(c->state, to));
        c->state = to;
}
